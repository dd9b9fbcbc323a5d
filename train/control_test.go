package train

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/conformance/reference"
)

// controlled runs a config with a control, and gives the steps as they are reported, without the times. The channel has no room, so that a test is
// told of a step before the run goes on.
func controlled(t *testing.T, ctx context.Context, cfg Config, c *Control) (tr *Trainer, lines chan Metrics, result chan Result) {
	tr, err := New(context.Background(), cfg, reference.NewBackend())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tr.Close()) })
	lines, result = make(chan Metrics), make(chan Result, 1)
	go func() {
		defer close(lines)
		r, err := tr.Run(ctx, Hooks{Control: c, Step: func(m Metrics) error {
			m.TokensPerSec, m.Seconds, m.Elapsed = 0, 0, 0
			lines <- m
			return nil
		}})
		if err == nil {
			result <- r
		}
		close(result)
	}()
	return tr, lines, result
}

// quiet fails if a step is reported though the run is paused.
func quiet(t *testing.T, lines <-chan Metrics) {
	t.Helper()
	select {
	case m, open := <-lines:
		t.Fatalf("step %d is reported by a paused run (open: %v)", m.Step, open)
	case <-time.After(50 * time.Millisecond):
	}
}

// A run that is taken step by step has the bits of one that is not, and tells each step at once: also where a loss scale that is doubled
// each step would show that a step's scalars came early, and over several micro-batches.
func TestSteppingChangesNoBits(t *testing.T) {
	for name, more := range map[string][]string{
		"f32":           nil,
		"f16":           {"precision=f16", "loss_scale=64", "loss_scale_steps=1"},
		"f16 overflows": {"precision=f16", "loss_scale=16777216", "loss_scale_steps=1", "accumulation=2"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := smallRun(t, more...)
			want, _, _ := trainAll(t, cfg)
			c := &Control{}
			c.Pause()
			require.True(t, c.Paused())
			_, lines, result := controlled(t, context.Background(), cfg, c)
			quiet(t, lines)
			var got []Metrics
			for range 4 {
				c.Step()
				got = append(got, <-lines)
				quiet(t, lines)
			}
			c.Continue()
			for m := range lines {
				got = append(got, m)
			}
			require.Equal(t, asLines(t, want), asLines(t, got), "as text, in which NaN equals NaN")
			require.Equal(t, 6, (<-result).Steps)
		})
	}
}

// asLines is metrics as metrics.jsonl has them.
func asLines(t *testing.T, all []Metrics) string {
	t.Helper()
	var lines bytes.Buffer
	for _, m := range all {
		require.NoError(t, WriteMetrics(&lines, m))
	}
	return lines.String()
}

func TestAPausedRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &Control{}
	c.Step() // pauses a run that goes
	_, lines, result := controlled(t, ctx, smallRun(t), c)
	quiet(t, lines)
	c.Step()
	require.Equal(t, 1, (<-lines).Step)
	cancel()
	_, open := <-lines
	require.False(t, open)
	r := <-result
	require.True(t, r.Interrupted)
	require.Equal(t, 1, r.Steps)
}

// What was asked for is done between two steps, with the parameters of the step that was reported last: also in a pause, and after the last step.
func TestDoBetweenSteps(t *testing.T) {
	ctx, c := context.Background(), &Control{}
	c.Pause()
	tr, lines, result := controlled(t, ctx, smallRun(t), c)
	did := make(chan float64)
	evaluate := func() error {
		loss, err := tr.Evaluate(ctx)
		did <- loss
		return err
	}
	c.Do(evaluate)
	initial := <-did
	for step := range 3 {
		c.Step()
		require.Equal(t, step+1, (<-lines).Step)
	}
	c.Do(evaluate)
	third := <-did
	require.Less(t, third, initial)
	want, _, _ := trainAll(t, smallRun(t))
	require.Equal(t, want[2].ValLoss, third, "of the third step's parameters")
	c.Continue()
	for range lines {
	}
	require.Equal(t, 6, (<-result).Steps)
}

func TestDoAfterTheLastStep(t *testing.T) {
	tr, err := New(context.Background(), smallRun(t), reference.NewBackend())
	require.NoError(t, err)
	c := &Control{}
	last := 0
	r, err := tr.Run(context.Background(), Hooks{Control: c, Step: func(m Metrics) error {
		if m.Step == 6 {
			c.Do(func() error { last = m.Step; return nil })
		}
		return nil
	}})
	require.NoError(t, err)
	require.Equal(t, 6, last)
	require.Equal(t, 6, r.Steps)
	require.NoError(t, tr.Close())
}

func TestAnErrorOfWhatWasAskedEndsTheRun(t *testing.T) {
	tr, err := New(context.Background(), smallRun(t), reference.NewBackend())
	require.NoError(t, err)
	full := errors.New("no space")
	c := &Control{}
	steps := 0
	r, err := tr.Run(context.Background(), Hooks{Control: c, Step: func(Metrics) error {
		if steps++; steps == 2 {
			c.Do(func() error { return full })
		}
		return nil
	}})
	require.ErrorIs(t, err, full)
	require.Less(t, r.Steps, 6)
	require.NoError(t, tr.Close())
}

// Time in a pause is not the device's.
func TestPausesAreNotInTheRate(t *testing.T) {
	c := &Control{}
	tr, err := New(context.Background(), smallRun(t, "eval_every=0", "sample_every=0"), reference.NewBackend())
	require.NoError(t, err)
	var rates []float64
	_, err = tr.Run(context.Background(), Hooks{Control: c, Step: func(m Metrics) error {
		rates = append(rates, m.TokensPerSec)
		c.Do(func() error { time.Sleep(300 * time.Millisecond); return nil })
		return nil
	}})
	require.NoError(t, err)
	require.NoError(t, tr.Close())
	require.Greater(t, rates[5], 32/0.3, "of 32 tokens a step, each of which waits for 300 ms")
}
