package bench

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
)

// steady is a device whose loops give rates that are known.
type steady struct {
	backend.Backend
	err    error // of making the loops
	calls  int
	closed int
}

func (s *steady) NewPeakLoops() (backend.PeakLoops, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s, nil
}

func (s *steady) Kernel() string { return "steady" }

// FMA and Triad are at their best in the third round.
func (s *steady) FMA() (float64, error) {
	s.calls++
	return map[bool]float64{true: 100, false: 90}[s.calls == 3], nil
}

func (s *steady) Triad() (float64, error) {
	return map[bool]float64{true: 10, false: 9}[s.calls == 3], nil
}

func (s *steady) Close() error { s.closed++; return nil }

func TestMeasurePeakTakesTheBest(t *testing.T) {
	dev := &steady{Backend: blind{open(t, 1)}}
	p, err := MeasurePeak(dev)
	require.NoError(t, err)
	require.Equal(t, Peak{GFLOPs: 100, GBs: 10, Kernel: "steady"}, p)
	require.Equal(t, 1, dev.closed)
}

func TestAPeakThatCantBeMeasured(t *testing.T) {
	dev := &steady{Backend: open(t, 1), err: fmt.Errorf("no clock: %w", errors.ErrUnsupported)}
	_, err := MeasurePeak(dev)
	require.ErrorIs(t, err, ErrNoPeak)
	r, err := Ops(context.Background(), dev, small("peri"), OpOptions{Batch: 2, SeqLen: 8, Repeats: 1})
	require.NoError(t, err, "the operators' times are there all the same")
	require.Nil(t, r.Peak)
	require.NotEmpty(t, r.Ops)
	require.Empty(t, r.Ops[0].Bound)

	dev.err = errors.New("broken")
	_, err = MeasurePeak(dev)
	require.ErrorIs(t, err, dev.err)
	_, err = Ops(context.Background(), dev, small("peri"), OpOptions{Batch: 2, SeqLen: 8, Repeats: 1})
	require.ErrorIs(t, err, dev.err)
	_, err = Steps(context.Background(), dev, []Model{small("peri")}, StepOptions{Batch: 2, SeqLen: 8, Steps: 1})
	require.ErrorIs(t, err, dev.err)
}
