package cpu

import (
	"fmt"
	"runtime"

	"github.com/vktrain/vktrain/backend/cpu/simd"
)

// MaxThreads is the most workers that New starts.
const MaxThreads = 1024

// DefaultThreads is one for each physical core that the process may use, and no more than GOMAXPROCS: two hardware threads of one
// core share its FMA units.
func DefaultThreads() int {
	n := runtime.GOMAXPROCS(0)
	if cores := physicalCores(); cores > 0 {
		n = min(n, cores)
	}
	return min(n, MaxThreads)
}

// Threads is the number of workers.
func (b *Backend) Threads() int { return b.pool.workers }

// describe names the processor, its vector instructions that are used, and the threads.
func describe(threads int) string {
	name := processorName()
	if name == "" {
		name = runtime.GOARCH
	}
	name += ", " + simd.Instructions()
	if threads == 1 {
		return name + ", 1 thread"
	}
	return fmt.Sprintf("%s, %d threads", name, threads)
}
