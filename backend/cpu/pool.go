package cpu

import (
	"sync"
	"sync/atomic"
)

// pool is a fixed set of workers: the caller of For and workers-1 goroutines that sleep between calls.
type pool struct {
	workers int
	wake    []chan struct{}
	done    sync.WaitGroup

	// The work of the current For.
	f     func(worker, i int)
	n     int64
	next  atomic.Int64
	fault atomic.Pointer[fault]
}

// fault is a panic of a worker, handed to the caller of For.
type fault struct{ value any }

func newPool(workers int) *pool {
	p := &pool{workers: workers, wake: make([]chan struct{}, workers-1)}
	for i := range p.wake {
		wake := make(chan struct{}, 1)
		p.wake[i] = wake
		go func() {
			for range wake {
				p.work(i + 1)
				p.done.Done()
			}
		}()
	}
	return p
}

// Workers is the number of workers.
func (p *pool) Workers() int { return p.workers }

// For calls f(worker, i) for each i in 0..n-1, in any order, and returns when all have returned. One For runs at a time.
func (p *pool) For(n int, f func(worker, i int)) {
	if n == 1 || p.workers == 1 {
		for i := range n {
			f(0, i)
		}
		return
	}
	p.f, p.n = f, int64(n)
	p.next.Store(0)
	helpers := min(n-1, len(p.wake))
	p.done.Add(helpers)
	for _, wake := range p.wake[:helpers] {
		wake <- struct{}{}
	}
	p.work(0)
	p.done.Wait()
	if x := p.fault.Swap(nil); x != nil {
		panic(x.value)
	}
}

func (p *pool) work(worker int) {
	defer func() {
		if r := recover(); r != nil {
			p.fault.Store(&fault{r})
		}
	}()
	for {
		i := p.next.Add(1) - 1
		if i >= p.n {
			return
		}
		p.f(worker, int(i))
	}
}

func (p *pool) close() {
	for _, wake := range p.wake {
		close(wake)
	}
}
