package cpu

import (
	"runtime"
	"sync"
	"time"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/cpu/simd"
)

const (
	fmaSteps  = 1 << 15 // of one burst: about 60 microseconds
	fmaBursts = 32      // taken between two looks at the clock

	triadWords = 24 << 20 // of each of three arrays, 96 MiB, for all threads together
)

// peakLoops has threads of its own, as many as the backend has workers.
type peakLoops struct {
	begin  []chan func(thread int)
	done   sync.WaitGroup
	arrays [3][]float32 // made by the first Triad
}

var _ backend.PeakMeter = (*Backend)(nil)

// NewPeakLoops starts threads. Triad's arrays take 288 MiB, from its first call to Close.
func (b *Backend) NewPeakLoops() (backend.PeakLoops, error) {
	l := &peakLoops{begin: make([]chan func(int), b.pool.workers)}
	for i := range l.begin {
		l.begin[i] = make(chan func(int))
		go func() {
			runtime.LockOSThread()
			for f := range l.begin[i] {
				f(i)
				l.done.Done()
			}
		}()
	}
	return l, nil
}

// run calls f in each thread, and returns the seconds until the last one is done.
func (l *peakLoops) run(f func(thread int)) float64 {
	l.done.Add(len(l.begin))
	start := time.Now()
	for _, c := range l.begin {
		c <- f
	}
	l.done.Wait()
	return time.Since(start).Seconds()
}

// Close stops the threads.
func (l *peakLoops) Close() error {
	for _, c := range l.begin {
		close(c)
	}
	return nil
}

// Kernel names the instructions; plain Go reaches less than the processor can.
func (l *peakLoops) Kernel() string { return simd.Instructions() }

// FMA is the best of a few bursts.
func (l *peakLoops) FMA() (float64, error) {
	best := 0.0
	for range 4 {
		seconds := l.run(func(int) {
			for range fmaBursts {
				var acc [simd.FMALanes]float32
				for i := range acc {
					acc[i] = float32(1 + i)
				}
				simd.FMALoop(fmaSteps, &acc, 0x1p-20)
			}
		})
		best = max(best, 2*simd.FMALanes*fmaSteps*fmaBursts*float64(len(l.begin))/seconds/1e9)
	}
	return best, nil
}

// Triad goes over the arrays once.
func (l *peakLoops) Triad() (float64, error) {
	span := func(thread int) (from, to int) {
		return thread * triadWords / len(l.begin), (thread + 1) * triadWords / len(l.begin)
	}
	if l.arrays[0] == nil {
		for i := range l.arrays { // each thread touches its pages first
			l.arrays[i] = make([]float32, triadWords)
			l.run(func(thread int) {
				from, to := span(thread)
				clear(l.arrays[i][from:to])
			})
		}
	}
	seconds := l.run(func(thread int) {
		from, to := span(thread)
		simd.Triad(l.arrays[0][from:to], l.arrays[1][from:to], l.arrays[2][from:to], 0.5)
	})
	return 12 * triadWords / seconds / 1e9, nil
}
