//go:build !linux && !darwin

package bench

// PeakResident is unknown.
func PeakResident() int64 { return 0 }

// ResetPeakResident is not possible.
func ResetPeakResident() bool { return false }
