package cpu

import "golang.org/x/sys/unix"

// adviseHuge asks for huge pages: fewer faults in the first step, and fewer misses of the address cache in all. A kernel without them goes on
// with small ones.
func adviseHuge(m []byte) { _ = unix.Madvise(m, unix.MADV_HUGEPAGE) }
