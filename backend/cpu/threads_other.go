//go:build !linux && !darwin

package cpu

// physicalCores is unknown.
func physicalCores() int { return 0 }

// processorName is unknown.
func processorName() string { return "" }
