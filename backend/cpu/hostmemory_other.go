//go:build !linux && !darwin

package cpu

// hostMemory is unknown.
func hostMemory() int64 { return 0 }
