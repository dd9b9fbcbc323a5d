//go:build !linux && !darwin

package bench

// peakResident is unknown.
func peakResident() int64 { return 0 }
