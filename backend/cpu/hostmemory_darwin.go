package cpu

import "golang.org/x/sys/unix"

// hostMemory is the machine's memory in bytes; 0 if unknown.
func hostMemory() int64 {
	total, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(total)
}
