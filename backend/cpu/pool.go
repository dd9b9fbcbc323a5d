package cpu

import (
	"runtime"
	"sync/atomic"
)

// pool is a fixed set of workers: the caller of For and workers-1 goroutines. Between calls they look for work for some microseconds, since
// the next operator follows at once, and then sleep.
type pool struct {
	workers int
	helpers []helper

	// state is epoch<<32 | open | the number of helpers at work. A For opens an epoch; helpers join while it is open, and the For ends when it
	// is closed and the last of them has left. One that the system does not run at the time is not waited for.
	state atomic.Uint64
	f     func(worker, i int)
	share []share
	fault atomic.Pointer[taskPanic]
}

const (
	epochUnit = 1 << 32
	open      = 1 << 31
	joined    = open - 1 // the mask of the count

	spins      = 2000 // looks before a helper sleeps, some tens of microseconds
	yieldEvery = 16   // looks between two yields, which let other goroutines have the processor
)

// share is the part of the tasks that a worker begins with: tasks next.. of those below end. Whoever is done with his own takes from others.
type share struct {
	next atomic.Int64
	end  int64
	_    [112]byte // the shares are on cache lines of their own, also where lines are fetched in pairs
}

// helper is a worker that is not the caller.
type helper struct {
	asleep atomic.Bool
	wake   chan struct{} // closed at the end
	_      [112]byte
}

// taskPanic is a panic of a worker, handed to the caller of For.
type taskPanic struct {
	worker int
	value  any
}

func newPool(workers int) *pool {
	p := &pool{workers: workers, helpers: make([]helper, workers-1), share: make([]share, workers)}
	for i := range p.helpers {
		p.helpers[i].wake = make(chan struct{}, 1)
		go p.help(i)
	}
	return p
}

// Workers is the number of workers.
func (p *pool) Workers() int { return p.workers }

// For calls f(worker, i) for each i in 0..n-1, in any order, and returns when all have returned. One For runs at a time. A worker begins with
// the same part of 0..n-1 each time, so that it finds in its cache what it has left there.
func (p *pool) For(n int, f func(worker, i int)) {
	if n <= 1 || p.workers == 1 {
		for i := range n {
			f(0, i)
		}
		return
	}
	p.f = f
	for i := range p.share {
		p.share[i].next.Store(int64(i * n / p.workers))
		p.share[i].end = int64((i + 1) * n / p.workers)
	}
	p.state.Store(p.state.Load()&^joined + epochUnit | open)
	for i := range p.helpers[:min(n-1, len(p.helpers))] {
		if h := &p.helpers[i]; h.asleep.Load() && h.asleep.CompareAndSwap(true, false) {
			h.wake <- struct{}{}
		}
	}
	p.work(0)
	for s := p.state.Load(); !p.state.CompareAndSwap(s, s&^open); s = p.state.Load() {
	}
	for i := 1; p.state.Load()&joined != 0; i++ {
		if i%yieldEvery == 0 {
			runtime.Gosched()
		}
	}
	if x := p.fault.Swap(nil); x != nil {
		panic(*x)
	}
}

// help is the life of helper i.
func (p *pool) help(i int) {
	h := &p.helpers[i]
	seen := uint64(0)
	for idle := 1; ; idle++ {
		s := p.state.Load()
		if s&open != 0 && s/epochUnit != seen {
			if p.state.CompareAndSwap(s, s+1) {
				seen = s / epochUnit
				p.work(i + 1)
				p.state.Add(^uint64(0))
			}
			idle = 0
			continue
		}
		switch {
		case idle >= spins:
			h.asleep.Store(true)
			// An epoch may have been opened before it could be seen that this one sleeps.
			if s := p.state.Load(); s&open != 0 && s/epochUnit != seen && h.asleep.CompareAndSwap(true, false) {
				continue
			}
			if _, more := <-h.wake; !more {
				return
			}
			idle = 0
		case idle%yieldEvery == 0:
			runtime.Gosched()
		}
	}
}

// work runs tasks of the worker's own share, then of the others'.
func (p *pool) work(worker int) {
	defer func() {
		if r := recover(); r != nil {
			p.fault.Store(&taskPanic{worker, r})
		}
	}()
	for k := range p.share {
		s := &p.share[(worker+k)%len(p.share)]
		for s.next.Load() < s.end {
			i := s.next.Add(1) - 1
			if i >= s.end {
				break
			}
			p.f(worker, int(i))
		}
	}
}

func (p *pool) close() {
	for i := range p.helpers {
		close(p.helpers[i].wake)
	}
}
