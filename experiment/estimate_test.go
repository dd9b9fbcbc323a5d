package experiment

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/cpu"
	"github.com/vktrain/vktrain/train"
)

// An estimate leaves nothing behind, is of what is not finished, and adds up what workers do one after the other.
func TestEstimate(t *testing.T) {
	temporary := t.TempDir()
	for _, name := range []string{"TMPDIR", "TMP"} { // as systems call it; others make such folders in the common one meanwhile
		t.Setenv(name, temporary)
	}
	m := tiny(t, book(t), "axes: {model.n_layers: [1, 4]}\nseeds: 3\ncost: 3\n")
	o := options(t)
	states, err := Look(m, o)
	require.NoError(t, err)
	est, err := EstimateTime(t.Context(), m, o, states)
	require.NoError(t, err)
	require.NoDirExists(t, o.Out)
	require.Equal(t, temporary, os.TempDir())
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)
	require.Equal(t, 2, est.Short)
	require.Equal(t, est.Runs[0], est.Runs[2], "of one size")
	sum := est.Turns
	for _, d := range est.Runs {
		require.Positive(t, d)
		sum += d
	}
	require.Positive(t, est.Turns)
	require.InDelta(t, float64(sum), float64(est.Total), float64(time.Microsecond))
	n, most := m.Runs[0].Params()
	require.True(t, most)
	require.Positive(t, n)

	states[0].Result = &RunResult{}
	o.Jobs, o.Threads = 2, 2
	est, err = EstimateTime(t.Context(), m, o, states)
	require.NoError(t, err)
	require.Zero(t, est.Runs[0], "it is finished")
	require.Less(t, est.Total-est.Turns, est.Runs[1]+est.Runs[2]+est.Runs[3]+est.Runs[4]+est.Runs[5], "two at a time")
}

func TestWhatARunDoes(t *testing.T) {
	for _, x := range []struct {
		steps, eval, diagnostics int
		want                     count
	}{
		{24, 0, 0, count{24, 0, 2}},
		{24, 10, 10, count{24, 4, 4}}, // evaluations: before, 10, 20, 24; diagnosed: 1, 10, 20, 24
		{20, 10, 10, count{20, 3, 3}},
		{24, 100, 100, count{24, 2, 2}},
		{5, 1, 1, count{5, 5, 6}},
		{1, 0, 5, count{1, 1, 2}},
	} {
		c, err := train.FromPreset("nano")
		require.NoError(t, err)
		c.Steps, c.EvalEvery, c.DiagnosticsEvery = x.steps, x.eval, x.diagnostics
		require.Equal(t, x.want, counts(c), "%+v", x)
	}
	s := sizes{size{flops: 1}: {fixed: 1, step: 2, diagnosed: 3, evaluation: 4, flops: 1}}
	nano, err := train.FromPreset("nano")
	require.NoError(t, err)
	c := withVocab(nano)
	got := s.like(c)
	require.Equal(t, 1.0, got.fixed, "what is done once does not grow with the model")
	require.Equal(t, 2*got.flops, got.step)
	require.Equal(t, 1+4*2+3*2+4*3.0, s[size{flops: 1}].fixed+s[size{flops: 1}].of(count{6, 2, 3}))
}

// little is a CPU that says it has little memory.
type little struct {
	*cpu.Backend
	memory int64
}

func (b little) Info() backend.Info {
	info := b.Backend.Info()
	info.Memory = b.memory
	return info
}

// Runs that have room alone but not together are refused before any starts, with what has room.
func TestRunsSideBySideHaveRoomTogether(t *testing.T) {
	m := tiny(t, book(t), "axes: {model.n_layers: [1, 2, 3]}\n")
	dev, err := cpu.New(cpu.Options{Threads: 1})
	require.NoError(t, err)
	defer dev.Close()
	var need []int64
	for _, r := range m.Runs {
		n, err := train.NeedOf(dev, r.Config)
		require.NoError(t, err)
		require.Greater(t, n.Run.Total(), n.Step.Total())
		need = append(need, n.Run.Total())
	}
	require.Greater(t, need[2], need[1])
	o := options(t)
	memory := need[2] + need[1] - 1
	o.Open = func(string, int) (backend.Backend, error) {
		b, err := cpu.New(cpu.Options{Threads: 1})
		return little{b, memory}, err
	}
	o.Jobs = 2
	_, err = Execute(t.Context(), m, o)
	var short *train.MemoryError
	require.ErrorAs(t, err, &short)
	require.Equal(t, memory+1, short.Need.Total(), "the two largest")
	require.ErrorContains(t, err, "2 runs side by side: ")
	require.ErrorContains(t, err, "use --jobs 1, or fewer devices")
	require.NoFileExists(t, filepath.Join(o.Out, RunsFolder, m.Runs[0].ID, RunFile), "none was started")
	states, err := Look(m, o)
	require.NoError(t, err)
	_, err = EstimateTime(t.Context(), m, o, states)
	require.ErrorAs(t, err, &short, "the dry run says so too")

	memory++
	_, err = Execute(t.Context(), m, o)
	require.NoError(t, err, "all have room by twos")

	m = tiny(t, book(t), "axes: {model.n_layers: [1, 2, 3, 30]}\n")
	large, err := train.NeedOf(dev, m.Runs[3].Config)
	require.NoError(t, err)
	memory, o.Jobs = large.Run.Total()+need[2]-1, 4
	o.Out = filepath.Join(t.TempDir(), "other")
	_, err = Execute(t.Context(), m, o)
	require.ErrorContains(t, err, "use --jobs 1, or fewer devices", "the large one has no room beside any")
}

// A run that diverges at once has no evaluation after its last step to be taken off.
func TestEstimatesOfRunsThatDivergeAreTimes(t *testing.T) {
	m := tiny(t, book(t), "axes: {lr: [1e30, 1e31]}\n")
	for i := range m.Runs {
		m.Runs[i].Config.EvalBatches, m.Runs[i].Config.EvalEvery, m.Runs[i].Config.Steps = 1000, 0, 100
	}
	states, err := Look(m, options(t))
	require.NoError(t, err)
	est, err := EstimateTime(t.Context(), m, options(t), states)
	require.NoError(t, err)
	for _, d := range est.Runs {
		require.Positive(t, d)
	}
}
