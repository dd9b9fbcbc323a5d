//go:build cgo

package vulkan

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	vk "github.com/vulkan-go/vulkan"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// shared and staged memory take different paths; a software driver has the first and can be told to behave as the second.
var memoryModes = map[string]func(*DeviceInfo){
	"as the device is": nil,
	"staged":           func(d *DeviceInfo) { d.Unified = false },
}

func TestRunsInOrderWithTwoSlots(t *testing.T) {
	for name, tweak := range memoryModes {
		t.Run(name, func(t *testing.T) {
			const n = 1000
			b := openArith(t, Options{tweak: tweak})
			p := chain(n, 5)
			s := newStore(t, b, p)
			e := compile(t, b, p, s)
			require.NoError(t, s.Write("acc", repeated(100, n)))
			want := float32(100)
			var last backend.Ticket
			for step := range 7 { // an odd number, so that both slots are first and last
				x := float32(step)
				require.NoError(t, e.Feed("x", repeated(x, n)))
				ticket, err := e.Submit()
				require.NoError(t, err)
				require.EqualValues(t, step+1, ticket)
				if last > 0 { // one step late, as training reads
					require.Equal(t, repeated(want, n), fetch(t, e, last, "sum", 4*n))
					require.Equal(t, repeated(x-1, n), fetch(t, e, last, "echo", 4*n))
				}
				want += x + 1
				last = ticket
			}
			acc := make([]byte, 4*n)
			require.NoError(t, s.Read("acc", acc)) // waits for the last run
			require.Equal(t, repeated(want, n), acc)
			require.Equal(t, repeated(want, n), fetch(t, e, last, "sum", 4*n))
		})
	}
}

func TestInputKeepsItsValue(t *testing.T) {
	const n = 3
	b := openArith(t, Options{})
	p := chain(n, 0)
	e := compile(t, b, p, newStore(t, b, p))
	_, err := e.Submit()
	require.ErrorContains(t, err, `input "x" was never fed`)
	require.NoError(t, e.Feed("x", repeated(5, n)))
	for step := 1; step <= 4; step++ {
		ticket, err := e.Submit()
		require.NoError(t, err)
		require.Equal(t, repeated(float32(6*step), n), fetch(t, e, ticket, "sum", 4*n))
	}
}

func TestTicketsGoStale(t *testing.T) {
	const n = 4
	b := openArith(t, Options{})
	p := chain(n, 0)
	e := compile(t, b, p, newStore(t, b, p))
	require.NoError(t, e.Feed("x", repeated(0, n)))
	dst := make([]byte, 4*n)
	require.ErrorContains(t, e.Fetch(1, "sum", dst), "has no run 1")
	for range 3 {
		_, err := e.Submit()
		require.NoError(t, err)
	}
	require.ErrorIs(t, e.Fetch(1, "sum", dst), backend.ErrStale)
	require.NoError(t, e.Fetch(2, "sum", dst))
	require.Equal(t, repeated(2, n), dst)
	require.NoError(t, e.Fetch(3, "sum", dst))
	require.Equal(t, repeated(3, n), dst)
	require.NoError(t, e.Fetch(3, "sum", dst), "an output may be fetched twice")
	require.ErrorContains(t, e.Fetch(4, "sum", dst), "has no run 4")
	require.ErrorContains(t, e.Fetch(0, "sum", dst), "has no run 0")
}

func TestWrongArguments(t *testing.T) {
	const n = 4
	b := openArith(t, Options{})
	p := chain(n, 0)
	s := newStore(t, b, p)
	e := compile(t, b, p, s)
	require.ErrorContains(t, e.Feed("y", nil), `no input "y"`)
	require.ErrorContains(t, e.Feed("x", make([]byte, 15)), "16 bytes, got 15")
	require.NoError(t, e.Feed("x", make([]byte, 16)))
	ticket, err := e.Submit()
	require.NoError(t, err)
	require.ErrorContains(t, e.Fetch(ticket, "acc", make([]byte, 16)), `no output "acc"`)
	require.ErrorContains(t, e.Fetch(ticket, "sum", make([]byte, 17)), "16 bytes, got 17")
	require.ErrorContains(t, s.Read("nothing", nil), `no variable "nothing"`)
	require.ErrorContains(t, s.Write("acc", make([]byte, 3)), "16 bytes, got 3")

	_, err = b.NewStore([]graph.Var{{Name: "a", Shape: graph.Shape{1}}, {Name: "a", Shape: graph.Shape{1}}})
	require.ErrorContains(t, err, `two variables named "a"`)
	empty, err := b.NewStore(nil)
	require.NoError(t, err)
	defer empty.Close()
	_, err = b.Compile(p, empty)
	require.ErrorContains(t, err, "the store has no variable acc f32[4]")
	other := openArith(t, Options{})
	_, err = other.Compile(p, s)
	require.ErrorContains(t, err, "of another backend")
}

// Several unsupported nodes are told at once.
func TestUnsupportedNodes(t *testing.T) {
	b := openArith(t, Options{})
	g := graph.NewBuilder()
	x := g.Input("x", graph.F32, 4, 4)
	g.Output("y", g.Softmax(g.ReLU(x)))
	p := g.Build("both")
	_, err := b.Compile(p, newStore(t, b, p))
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "%relu = relu(%x)")
	require.ErrorContains(t, err, "%softmax = softmax(%relu)")
	var u *backend.UnsupportedError
	require.ErrorAs(t, err, &u)
	require.Equal(t, b.Info().Name, u.Device)
}

// However a program is cut, and whatever memory it uses, the bits are the same.
func TestCutsGiveTheSameBits(t *testing.T) {
	const n, steps = 777, 30
	run := func(limit time.Duration) (parts int, result []byte) {
		b := openArith(t, Options{SubmitLimit: limit})
		p := chain(n, steps)
		s := newStore(t, b, p)
		e := compile(t, b, p, s)
		for i := range 5 {
			require.NoError(t, e.Feed("x", repeated(0.1*float32(i), n)))
			_, err := e.Submit()
			require.NoError(t, err)
		}
		return e.Submissions(), fetch(t, e, 5, "sum", 4*n)
	}
	whole, want := run(-1)
	require.Equal(t, 1, whole)
	many, got := run(time.Nanosecond)
	require.Equal(t, steps+4, many, "every node alone")
	require.Equal(t, want, got)
}

// A step must not wait for the device: two submits take no time beside the runs that they start. The kernels are made slower until a
// run takes long enough to tell, on whatever device this is.
func TestSubmitDoesNotWait(t *testing.T) {
	const n, enough = 1 << 12, 60 * time.Millisecond
	defer func() { arithSpin = 0 }()
	b := openArith(t, Options{})
	p := chain(n, 20)
	s := newStore(t, b, p)
	for arithSpin = 20; ; arithSpin *= 4 {
		submitted, ran := submitTwice(t, compile(t, b, p, s), n)
		if ran < enough {
			continue
		}
		t.Logf("two submits %v, done after %v", submitted, ran)
		require.Less(t, submitted, ran/3)
		return
	}
}

func submitTwice(t *testing.T, e *Executable, n int) (submitted, ran time.Duration) {
	require.NoError(t, e.Feed("x", repeated(1, n)))
	ticket, err := e.Submit() // some drivers compile at the first run
	require.NoError(t, err)
	fetch(t, e, ticket, "sum", 4*n)
	start := time.Now()
	_, err = e.Submit()
	require.NoError(t, err)
	ticket, err = e.Submit()
	require.NoError(t, err)
	submitted = time.Since(start)
	fetch(t, e, ticket, "sum", 4*n)
	return submitted, time.Since(start)
}

func TestLargeVariablesGoThroughStagingInParts(t *testing.T) {
	for name, tweak := range memoryModes {
		t.Run(name, func(t *testing.T) {
			b := openArith(t, Options{tweak: tweak})
			const n = 2*transferBytes/4 + 1237 // more than both staging buffers
			s, err := b.NewStore([]graph.Var{{Name: "w", DType: graph.F32, Shape: graph.Shape{n}}, {Name: "odd", DType: graph.BF16, Shape: graph.Shape{3}}})
			require.NoError(t, err)
			defer s.Close()
			got := make([]byte, 4*n)
			require.NoError(t, s.Read("w", got))
			require.Equal(t, make([]byte, 4*n), got, "a new store is zero")
			want := make([]byte, 4*n)
			for i := range want {
				want[i] = byte(i * 7 / 5)
			}
			require.NoError(t, s.Write("w", want))
			require.NoError(t, s.Write("odd", []byte{1, 2, 3, 4, 5, 6}))
			require.NoError(t, s.Read("w", got))
			require.Equal(t, want, got)
			odd := make([]byte, 6)
			require.NoError(t, s.Read("odd", odd))
			require.Equal(t, []byte{1, 2, 3, 4, 5, 6}, odd)
		})
	}
}

func TestProgramsShareAStore(t *testing.T) {
	const n = 10
	b := openArith(t, Options{})
	p := chain(n, 1)
	s := newStore(t, b, p)
	one, two := compile(t, b, p, s), compile(t, b, p, s)
	for i := range 4 {
		for _, e := range []*Executable{one, two} {
			require.NoError(t, e.Feed("x", repeated(float32(i), n)))
			_, err := e.Submit()
			require.NoError(t, err)
		}
	}
	acc := make([]byte, 4*n)
	require.NoError(t, s.Read("acc", acc))
	require.Equal(t, repeated(2*(1+2+3+4), n), acc)
	require.ErrorContains(t, s.Close(), "in use by 2 executables")
}

func TestViewsAndPlainOutputs(t *testing.T) {
	b := openArith(t, Options{})
	g := graph.NewBuilder()
	x := g.Input("x", graph.F32, 128)
	w := g.Var("w", graph.F32, 192)
	upper := g.View(x, 64, 64)
	g.Add(upper, g.View(w, 64, 64), g.View(w, 128, 64))
	g.Output("upper", upper)
	g.Output("w", w)
	g.Output("third", g.View(w, 128, 64))
	p := g.Build("views")
	s := newStore(t, b, p)
	e := compile(t, b, p, s)
	require.NoError(t, s.Write("w", append(append(repeated(1, 64), repeated(2, 64)...), repeated(9, 64)...)))
	require.NoError(t, e.Feed("x", append(repeated(10, 64), repeated(20, 64)...)))
	ticket, err := e.Submit()
	require.NoError(t, err)
	require.Equal(t, repeated(20, 64), fetch(t, e, ticket, "upper", 256))
	require.Equal(t, repeated(22, 64), fetch(t, e, ticket, "third", 256))
	require.Equal(t, append(append(repeated(1, 64), repeated(2, 64)...), repeated(22, 64)...), fetch(t, e, ticket, "w", 768))
}

func TestProgramWithoutNodes(t *testing.T) {
	b := openArith(t, Options{})
	g := graph.NewBuilder()
	g.Output("x", g.Input("x", graph.F32, 3))
	p := g.Build("echo")
	e := compile(t, b, p, newStore(t, b, p))
	require.NoError(t, e.Feed("x", floats(1, 2, 3)))
	ticket, err := e.Submit()
	require.NoError(t, err)
	require.Equal(t, floats(1, 2, 3), fetch(t, e, ticket, "x", 12))
}

func TestUseAfterClose(t *testing.T) {
	const n = 8
	b := openArith(t, Options{})
	p := chain(n, 1)
	s, err := b.NewStore(p.Vars())
	require.NoError(t, err)
	e, err := b.Compile(p, s)
	require.NoError(t, err)
	require.NoError(t, e.Feed("x", repeated(1, n)))
	_, err = e.Submit()
	require.NoError(t, err)

	require.NoError(t, e.Close())
	require.NoError(t, e.Close(), "closing twice is fine")
	require.ErrorIs(t, e.Feed("x", repeated(1, n)), backend.ErrClosed)
	_, err = e.Submit()
	require.ErrorIs(t, err, backend.ErrClosed)
	require.ErrorIs(t, e.Fetch(1, "sum", make([]byte, 4*n)), backend.ErrClosed)

	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Read("acc", make([]byte, 4*n)), backend.ErrClosed)
	_, err = b.Compile(p, s)
	require.ErrorIs(t, err, backend.ErrClosed)

	open, err := b.NewStore(p.Vars())
	require.NoError(t, err)
	running, err := b.Compile(p, open)
	require.NoError(t, err)
	require.NoError(t, running.Feed("x", repeated(1, n)))
	_, err = running.Submit()
	require.NoError(t, err)
	require.NoError(t, b.Close(), "what is open is closed with the device, after its runs")
	require.NoError(t, b.Close())
	_, err = b.NewStore(nil)
	require.ErrorIs(t, err, backend.ErrClosed)
	_, err = running.Submit()
	require.ErrorIs(t, err, backend.ErrClosed)
	require.ErrorIs(t, open.Write("acc", make([]byte, 4*n)), backend.ErrClosed)
	require.NoError(t, running.Close())
	require.NoError(t, open.Close())
	require.NotEmpty(t, b.Info().Name, "Info never fails")
}

// Stores and backends may be used from several goroutines, each executable from one.
func TestConcurrentExecutables(t *testing.T) {
	const n, workers, runs = 64, 4, 20
	b := openArith(t, Options{})
	var wg sync.WaitGroup
	errs := make([]error, workers)
	for w := range workers {
		wg.Go(func() { errs[w] = countUp(b, n, runs, float32(w)) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
}

func countUp(b *Backend, n, runs int, x float32) error {
	p := chain(n, 2)
	s, err := b.NewStore(p.Vars())
	if err != nil {
		return err
	}
	defer s.Close()
	e, err := b.Compile(p, s)
	if err != nil {
		return err
	}
	defer e.Close()
	if err := e.Feed("x", repeated(x, n)); err != nil {
		return err
	}
	for range runs {
		if _, err := e.Submit(); err != nil {
			return err
		}
	}
	got := make([]byte, 4*n)
	if err := s.Read("acc", got); err != nil {
		return err
	}
	if want := repeated(float32(runs)*(x+1), n); string(got) != string(want) {
		return fmt.Errorf("worker %v: got % x, want % x", x, got[:4], want[:4])
	}
	return nil
}

// A trace names the submission of a run that each node is in, and goes on in time from one command buffer to the next.
func TestTraceTellsOfSubmissions(t *testing.T) {
	for limit, submissions := range map[time.Duration]func(node int) int{
		-1: func(int) int { return 0 }, 1: func(node int) int { return node },
	} {
		b := openArith(t, Options{SubmitLimit: limit})
		p := chain(64, 2*profileNodes)
		e := compile(t, b, p, newStore(t, b, p))
		require.NoError(t, e.Feed("x", repeated(1, 64)))
		spans, err := e.Trace()
		require.NoError(t, err)
		require.Len(t, spans, len(p.Nodes()))
		end := 0.0
		for i, s := range spans {
			require.Equal(t, submissions(i), s.Submission)
			require.GreaterOrEqual(t, s.Start, end-1e-9)
			end = s.Start + s.Seconds
		}
		require.Positive(t, end)
	}
}

func TestProfileTimesEachNode(t *testing.T) {
	const n = 1 << 12
	arithSpin = 20
	defer func() { arithSpin = 0 }()
	b := openArith(t, Options{})
	p := chain(n, 2*profileNodes) // more than one submission
	s := newStore(t, b, p)
	e := compile(t, b, p, s)
	require.NoError(t, e.Feed("x", repeated(1, n)))
	seconds, err := e.Profile()
	require.NoError(t, err)
	require.Len(t, seconds, len(p.Nodes()))
	sum := 0.0
	for _, s := range seconds {
		require.GreaterOrEqual(t, s, 0.0)
		sum += s
	}
	require.Positive(t, sum)
	acc := make([]byte, 4*n)
	require.NoError(t, s.Read("acc", acc))
	require.Equal(t, repeated(2, n), acc, "a profile is a run")
	ticket, err := e.Submit()
	require.NoError(t, err)
	require.Equal(t, repeated(4, n), fetch(t, e, ticket, "sum", 4*n))
}

// A clock of no frequency is no clock: RADV without hardware says that a tick takes 1/0.
func TestTimestampPeriods(t *testing.T) {
	for period, want := range map[float32]float32{1: 1, 52.08: 52.08, 0: 0, -1: 0, float32(math.Inf(1)): 0, float32(math.NaN()): 0} {
		l := Limits{}
		l.fill(&vk.PhysicalDeviceLimits{TimestampPeriod: period})
		require.Equal(t, want, l.TimestampNanos, period)
	}
}
