//go:build linux || darwin

package bench

import "golang.org/x/sys/unix"

// cpuSeconds is what the process has taken of all cores so far; 0 if unknown.
func cpuSeconds() float64 {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
