package experiment

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/cpu"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/train"
)

// book is a text that takes a moment to open.
func book(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "book.txt")
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, "Line %d says that what is written without effort is read without pleasure.\n", i*i)
	}
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o666))
	return path
}

// tiny is an experiment whose runs take a fraction of a second. lr 1e30 does not stay finite.
func tiny(t *testing.T, text, more string) *Matrix {
	e, err := Parse("tiny.yaml", []byte(fmt.Sprintf(`
base:
  model: {d_model: 16, n_layers: 1, n_heads: 2, n_kv_heads: 1, head_dim: 8, d_ff: 24}
  data: {path: %q, tokenizer: byte}
  seq_len: 16
  batch: 2
  steps: 5
  eval_batches: 2
  eval_every: 2
  warmup: 0
  clip: 0
  weight_decay: 0
%s`, text, more)))
	require.NoError(t, err)
	m, err := e.Matrix()
	require.NoError(t, err)
	return m
}

const twoByThree = `
axes:
  model.placement: [pre, peri]
  lr: [3e-3, 1e30]
seeds: 3
`

func options(t *testing.T) Options {
	return Options{Out: filepath.Join(t.TempDir(), "o[u]t*"), Devices: []string{"cpu"}, Threads: 1}
}

// written reads what must have the same bits, by the path.
func written(t *testing.T, out string) map[string]string {
	files := map[string]string{}
	paths, err := filepath.Glob(filepath.Join(globEscape(out), RunsFolder, "*", RunFile))
	require.NoError(t, err)
	for _, name := range []string{ResultsFile, MarkdownFile, SummaryFile, RunsTableFile, ExperimentFile} {
		paths = append(paths, filepath.Join(out, name))
	}
	for _, p := range paths {
		raw, err := os.ReadFile(p)
		require.NoError(t, err)
		if filepath.Base(p) == RunFile {
			raw = withoutTime(t, raw)
		}
		rel, err := filepath.Rel(out, p)
		require.NoError(t, err)
		files[rel] = string(raw)
	}
	return files
}

// withoutTime is a run's result without what depends on time.
func withoutTime(t *testing.T, raw []byte) []byte {
	var r RunResult
	require.NoError(t, json.Unmarshal(raw, &r))
	r.Cost.Time, r.Cost.Resident = Timing{}, 0
	raw, err := json.Marshal(r)
	require.NoError(t, err)
	return raw
}

func TestAnExperimentFromItsRunsToItsTables(t *testing.T) {
	text := book(t)
	m := tiny(t, text, twoByThree)
	o := options(t)
	var events []Event
	o.Watch = func(e Event) { events = append(events, e) }
	r, err := Execute(context.Background(), m, o)
	require.NoError(t, err)

	counts := map[EventKind]int{}
	for _, e := range events {
		counts[e.Kind]++
	}
	require.Equal(t, 12, counts[EventStart])
	require.Equal(t, 12, counts[EventDone])
	require.GreaterOrEqual(t, counts[EventStep], 6*5+6)
	require.Len(t, r.Runs, 12)
	require.Len(t, r.Combinations, 4)
	for i, c := range r.Combinations {
		require.Equal(t, 3, c.Runs)
		if i%2 == 1 {
			require.Equal(t, 3, c.Diverged, c.ID)
			require.Empty(t, c.Figures)
			continue
		}
		require.Zero(t, c.Diverged)
		v := c.Figures[MetricValLoss]
		require.Equal(t, 3, v.N)
		require.Less(t, v.Mean, c.Figures["initial_loss"].Mean, "it has learned")
		require.NotNil(t, v.SD)
	}
	peri := r.difference(MetricValLoss, "peri_lr=3e-3")
	require.Equal(t, 3, peri.N)
	require.NotNil(t, peri.Interval)
	require.Nil(t, r.difference(MetricValLoss, "peri_lr=1e30"), "there is no pair left")
	require.Contains(t, r.Runs[3].Diverged, "is ")
	require.NotContains(t, r.Runs[3].Device, "thread")
	require.NotNil(t, r.Sensitivity, "lr is an axis")

	var read Results
	raw, err := os.ReadFile(filepath.Join(o.Out, ResultsFile))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &read))
	require.Equal(t, *r, read, "results.json has all of it")
	for _, name := range []string{SummaryFile, RunsTableFile} {
		raw, err := os.ReadFile(filepath.Join(o.Out, name))
		require.NoError(t, err)
		rows, err := csv.NewReader(bytes.NewReader(raw)).ReadAll()
		require.NoError(t, err, "every row is as long as the head")
		require.Greater(t, len(rows), 4)
	}

	// A run's folder is that of training with its config.
	dir := filepath.Join(o.Out, RunsFolder, "peri_lr=3e-3_s2")
	all, err := train.ReadConfig(filepath.Join(dir, train.SettingsFile))
	require.NoError(t, err)
	cfg, err := train.Load(all)
	require.NoError(t, err)
	require.Equal(t, uint64(2), cfg.Seed)
	dev, err := cpu.New(cpu.Options{Threads: 2})
	require.NoError(t, err)
	defer dev.Close()
	tr, err := train.New(context.Background(), cfg, dev)
	require.NoError(t, err)
	alone, err := tr.Run(context.Background(), train.Hooks{})
	require.NoError(t, err)
	require.NoError(t, tr.Close())
	for _, run := range r.Runs {
		if run.ID == "peri_lr=3e-3_s2" {
			require.Equal(t, alone.ValLoss, run.Figures[MetricValLoss], "to the last bit")
		}
	}
}

func TestTheSameBitsWhateverComesBetween(t *testing.T) {
	text := book(t)
	m := tiny(t, text, twoByThree)
	o := options(t)
	_, err := Execute(context.Background(), m, o)
	require.NoError(t, err)
	want := written(t, o.Out)

	side := options(t)
	side.Jobs, side.Threads = 3, 3
	_, err = Execute(context.Background(), m, side)
	require.NoError(t, err)
	require.Equal(t, want, written(t, side.Out), "side by side")

	cut := options(t)
	steps, calls := 0, 0
	for done := false; !done; calls++ {
		require.Less(t, calls, 40)
		ctx, cancel := context.WithCancel(context.Background())
		steps = 0
		cut.Watch = func(e Event) {
			if e.Kind == EventStep {
				if steps++; steps == 7 {
					cancel()
				}
			}
		}
		_, err = Execute(ctx, m, cut)
		cancel()
		if done = err == nil; !done {
			require.ErrorIs(t, err, context.Canceled)
			require.NoFileExists(t, filepath.Join(cut.Out, ResultsFile))
		}
	}
	require.Greater(t, calls, 3)
	require.Equal(t, want, written(t, cut.Out), "interrupted again and again")

	kept := 0
	cut.Watch = func(e Event) {
		require.Equal(t, EventKept, e.Kind, "nothing is trained twice")
		kept++
	}
	cut.Open = func(string, int) (backend.Backend, error) { return nil, errors.New("no device is needed") }
	_, err = Execute(context.Background(), m, cut)
	require.NoError(t, err)
	require.Equal(t, 12, kept)
}

func TestOtherSettingsAreNotTakenForTheSame(t *testing.T) {
	text := book(t)
	o := options(t)
	_, err := Execute(context.Background(), tiny(t, text, "seeds: 2"), o)
	require.NoError(t, err)
	before := written(t, o.Out)

	more, err := Execute(context.Background(), tiny(t, text, "seeds: 3\ndiverged: 0.1"), o)
	require.NoError(t, err, "more seeds and another criterion go on from there")
	require.Equal(t, 3, more.Combinations[0].Diverged)
	require.Equal(t, before["runs/base_s1/result.json"], written(t, o.Out)["runs/base_s1/result.json"])

	changed := tiny(t, text, "seeds: 2")
	for i := range changed.Runs {
		changed.Runs[i].Config.LR = 1e-3
	}
	_, err = Execute(context.Background(), changed, o)
	require.ErrorContains(t, err, "holds 2 finished runs with other settings (base_s1 had lr 0.007, now 0.001; min_lr 0.0007")
	require.ErrorContains(t, err, "give another --out, or --replace to train them again")
	require.ErrorAs(t, err, new(*train.ConfigError))
	states, err := Look(changed, o)
	require.NoError(t, err)
	require.Contains(t, states[0].Changed, "lr 0.007, now 0.001")
	o.Replace = true
	_, err = Execute(context.Background(), changed, o)
	require.NoError(t, err)
	require.NotEqual(t, before["runs/base_s1/result.json"], written(t, o.Out)["runs/base_s1/result.json"])

	// The text counts by what it holds.
	raw, err := os.ReadFile(text)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(text, append(raw, "More.\n"...), 0o666))
	o.Replace = false
	_, err = Execute(context.Background(), changed, o)
	require.ErrorContains(t, err, textKey)
}

func TestAFolderIsOneExperiments(t *testing.T) {
	m := tiny(t, book(t), "seeds: 1")
	o := options(t)
	require.NoError(t, os.MkdirAll(o.Out, 0o777))
	unlock, err := lockFolder(o.Out)
	require.NoError(t, err)
	_, err = Execute(context.Background(), m, o)
	require.ErrorContains(t, err, "is in use: another vktrain runs an experiment there")
	unlock()
	_, err = Execute(context.Background(), m, o)
	require.NoError(t, err)

	dir := filepath.Join(o.Out, RunsFolder, "base_s1")
	left := []string{filepath.Join(o.Out, ".results.json.ABCDEFGH"), filepath.Join(dir, ".model.safetensors.12345678")}
	mine := []string{filepath.Join(o.Out, ".notes.txt"), filepath.Join(dir, ".hidden")}
	for _, path := range append(left, mine...) {
		require.NoError(t, os.WriteFile(path, nil, 0o666))
	}
	require.NoError(t, os.Remove(filepath.Join(dir, RunFile)))
	_, err = Execute(context.Background(), m, o)
	require.NoError(t, err)
	for i := range left {
		require.NoFileExists(t, left[i])
		require.FileExists(t, mine[i])
	}

	result := filepath.Join(dir, RunFile)
	raw, err := os.ReadFile(result)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(result, bytes.Replace(raw, []byte(`"steps": "5"`), []byte(`"steps": "6"`), 1), 0o666))
	_, err = Execute(context.Background(), m, o)
	require.ErrorContains(t, err, "its hash is not that of its settings: remove it, and the run is trained again")
	require.NoError(t, os.WriteFile(result, raw[:len(raw)/2], 0o666))
	_, err = Execute(context.Background(), m, o)
	require.ErrorContains(t, err, "is no result of a run")

	require.NoError(t, os.WriteFile(filepath.Join(o.Out, train.MetricsFile), nil, 0o666))
	_, err = Execute(context.Background(), m, o)
	require.ErrorContains(t, err, "an experiment wants a folder of its own")
}

// named is a CPU that has another name, and fails when asked to.
type named struct {
	backend.Backend
	name string
	kind backend.Kind
	fail *atomic.Int32 // how many stores are still to fail
}

func (n named) Info() backend.Info {
	i := n.Backend.Info()
	i.Name, i.Kind = n.name, n.kind
	return i
}

func (n named) NewStore(vars []graph.Var) (backend.Store, error) {
	if n.fail.Add(-1) >= 0 {
		return nil, errors.New("the device is lost")
	}
	return n.Backend.NewStore(vars)
}

func TestDevicesTakeWholeSeeds(t *testing.T) {
	m := tiny(t, book(t), "axes: {model.placement: [pre, peri]}\nseeds: 3")
	o := options(t)
	var fail atomic.Int32
	kind := backend.CPU
	o.Devices = []string{"cpu", "vulkan:0", "vulkan:1"}
	o.Open = func(name string, threads int) (backend.Backend, error) {
		b, err := cpu.New(cpu.Options{Threads: 1})
		if name == "cpu" {
			return b, err
		}
		return named{b, "a card", kind, &fail}, err
	}
	kind = backend.Discrete
	_, err := Execute(context.Background(), m, o)
	require.ErrorContains(t, err, "precision: auto is f32 on cpu: ")
	require.ErrorContains(t, err, "set it in base")

	kind = backend.CPU
	fail.Store(1)
	_, err = Execute(context.Background(), m, o)
	var short *IncompleteError
	require.ErrorAs(t, err, &short)
	require.Equal(t, IncompleteError{Done: 5, All: 6, Failed: 1, First: short.First}, *short)
	require.Regexp(t, "5 of 6 runs are finished, 1 failed: (pre|peri)_s2: the device is lost$", err.Error())
	require.NoFileExists(t, filepath.Join(o.Out, ResultsFile))

	r, err := Execute(context.Background(), m, o)
	require.NoError(t, err)
	for _, run := range r.Runs {
		require.Equal(t, run.Seed == 2, strings.Contains(run.Device, "a card"), "%s: of two kinds of devices the second seed is the second's", run.ID)
	}
	require.Contains(t, r.Markdown(), "The runs are of several devices: ")
}
