package bench

import (
	"runtime"
	"sync"
	"time"

	"github.com/vktrain/vktrain/backend/cpu/simd"
)

// Peak is the most that the processor does with some threads, as measured by a loop of float32 FMAs on registers and a triad over arrays that no
// cache holds.
type Peak struct {
	Threads int     `json:"threads"`
	GFLOPs  float64 `json:"gflops"`   // per second
	GBs     float64 `json:"gb_per_s"` // read and written by a triad; a store's line that is read first does not count
	Kernel  string  `json:"kernel"`   // AVX2, NEON, or plain Go, which reaches less than the processor can
}

const (
	fmaSteps  = 1 << 15 // of one burst: about 60 microseconds
	fmaBursts = 32      // taken between two looks at the clock
)

// triadWords is the length of each of three arrays, 96 MiB, for all threads together. Tests make it less.
var triadWords = 24 << 20

// team is threads that start work together.
type team struct {
	begin []chan func(thread int)
	done  sync.WaitGroup
}

func newTeam(threads int) *team {
	t := &team{begin: make([]chan func(int), threads)}
	for i := range t.begin {
		t.begin[i] = make(chan func(int))
		go func() {
			runtime.LockOSThread()
			for f := range t.begin[i] {
				f(i)
				t.done.Done()
			}
		}()
	}
	return t
}

// run calls f in each thread, and returns the seconds until the last one is done.
func (t *team) run(f func(thread int)) float64 {
	t.done.Add(len(t.begin))
	start := time.Now()
	for _, c := range t.begin {
		c <- f
	}
	t.done.Wait()
	return time.Since(start).Seconds()
}

func (t *team) close() {
	for _, c := range t.begin {
		close(c)
	}
}

// fma is a burst's GFLOP/s.
func (t *team) fma() float64 {
	seconds := t.run(func(int) {
		for range fmaBursts {
			var acc [simd.FMALanes]float32
			for i := range acc {
				acc[i] = float32(1 + i)
			}
			simd.FMALoop(fmaSteps, &acc, 0x1p-20)
		}
	})
	return 2 * simd.FMALanes * fmaSteps * fmaBursts * float64(len(t.begin)) / seconds / 1e9
}

// fmaMeter takes the best burst.
type fmaMeter struct {
	team *team
	best float64
}

func newFMAMeter(threads int) *fmaMeter { return &fmaMeter{team: newTeam(threads)} }

// look takes a few bursts: between the turns of a measurement, so that the peak is of the same minutes.
func (m *fmaMeter) look() {
	for range 4 {
		m.best = max(m.best, m.team.fma())
	}
}

// MeasurePeak takes half a second and 288 MiB.
func MeasurePeak(threads int) Peak {
	m := newFMAMeter(threads)
	defer m.team.close()
	var arrays [3][]float32
	for i := range arrays {
		arrays[i] = make([]float32, triadWords)
	}
	triad := func(thread int) {
		from, to := thread*triadWords/threads, (thread+1)*triadWords/threads
		simd.Triad(arrays[0][from:to], arrays[1][from:to], arrays[2][from:to], 0.5)
	}
	for i := range arrays { // each thread touches its pages first
		m.team.run(func(thread int) {
			clear(arrays[i][thread*triadWords/threads : (thread+1)*triadWords/threads])
		})
	}
	p := Peak{Threads: threads, Kernel: simd.Instructions()}
	for range 8 {
		m.look()
		p.GBs = max(p.GBs, 12e-9*float64(triadWords)/m.team.run(triad))
	}
	p.GFLOPs = m.best
	return p
}
