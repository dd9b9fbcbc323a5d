//go:build linux || darwin

package cpu

import "golang.org/x/sys/unix"

// mapMemory maps zeroed memory, nil if the system has none.
func mapMemory(n int) []byte {
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	adviseHuge(m)
	return m
}

func unmapMemory(m []byte) {
	if err := unix.Munmap(m); err != nil {
		panic("cpu: munmap: " + err.Error())
	}
}
