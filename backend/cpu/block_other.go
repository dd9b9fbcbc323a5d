//go:build !linux && !darwin

package cpu

func mapMemory(int) []byte { return nil }

func unmapMemory([]byte) {}
