package bench

import "golang.org/x/sys/unix"

// PeakResident is the most memory that the process has held in bytes; 0 if unknown.
func PeakResident() int64 {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return usage.Maxrss
}

// ResetPeakResident is not possible.
func ResetPeakResident() bool { return false }
