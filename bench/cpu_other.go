//go:build !linux && !darwin

package bench

// cpuSeconds is unknown.
func cpuSeconds() float64 { return 0 }
