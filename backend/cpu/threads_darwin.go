package cpu

import "golang.org/x/sys/unix"

// physicalCores is how many cores the machine has; 0 if unknown.
func physicalCores() int {
	n, err := unix.SysctlUint32("hw.physicalcpu")
	if err != nil {
		return 0
	}
	return int(n)
}

// processorName is the processor's model; empty if unknown.
func processorName() string {
	name, err := unix.Sysctl("machdep.cpu.brand_string")
	if err != nil {
		return ""
	}
	return name
}
