package cpu

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Every task runs once, whether the helpers spin, sleep, or are more than the processors.
func TestForRunsEachTaskOnce(t *testing.T) {
	for _, workers := range []int{1, 2, 3, 9} {
		p := newPool(workers)
		for round := range 300 {
			n := round * round % 211
			if round%100 == 99 {
				time.Sleep(5 * time.Millisecond) // now they sleep
			}
			ran := make([]atomic.Int32, n)
			busy := make([]atomic.Int32, workers)
			p.For(n, func(worker, i int) {
				if busy[worker].Add(1) != 1 {
					t.Errorf("worker %d runs two tasks at once", worker)
				}
				ran[i].Add(1)
				busy[worker].Add(-1)
			})
			for i := range ran {
				require.EqualValues(t, 1, ran[i].Load(), "%d workers, task %d of %d", workers, i, n)
			}
		}
		p.close()
	}
}

func TestForHandsAPanicOver(t *testing.T) {
	p := newPool(3)
	defer p.close()
	for _, bad := range []int{0, 5, 9} {
		func() {
			defer func() { require.Equal(t, "bad task", recover().(taskPanic).value) }()
			p.For(10, func(_, i int) {
				if i == bad {
					panic("bad task")
				}
			})
		}()
		var n atomic.Int32
		p.For(10, func(_, _ int) { n.Add(1) })
		require.EqualValues(t, 10, n.Load())
	}
}

func BenchmarkForkJoin(b *testing.B) {
	p := newPool(2)
	defer p.close()
	for b.Loop() {
		p.For(2, func(_, _ int) {})
	}
}
