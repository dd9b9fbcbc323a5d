package train

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/checkpoint"
	"github.com/vktrain/vktrain/graph"
)

// smallRun is a config that the interpreter trains in a moment.
func smallRun(t *testing.T, more ...string) Config {
	c, err := Load(assign(t, append([]string{
		"model.d_model=16", "model.n_layers=1", "model.n_heads=2", "model.n_kv_heads=1", "model.head_dim=8", "model.d_ff=24",
		"data.vocab_size=280", "seq_len=16", "batch=2", "steps=6", "warmup=2", "eval_every=3", "eval_batches=2", "sample_every=4", "sample_tokens=5",
	}, more...)...))
	require.NoError(t, err)
	return c
}

// train runs a config to its end and gives its lines, without the times.
func trainAll(t *testing.T, cfg Config) (lines []Metrics, samples []string, r Result) {
	tr, err := New(context.Background(), cfg, reference.NewBackend())
	require.NoError(t, err)
	r, err = tr.Run(context.Background(), Hooks{
		Step: func(m Metrics) error {
			m.TokensPerSec, m.Seconds, m.Elapsed = 0, 0, 0
			lines = append(lines, m)
			return nil
		},
		Sample: func(_ int, text string) error { samples = append(samples, text); return nil },
	})
	require.NoError(t, err)
	require.NoError(t, tr.Close())
	return lines, samples, r
}

// The first step has nothing before it and the last nothing behind it; diagnosed steps and those after them are not like the others.
func TestWhichStepsAreTimed(t *testing.T) {
	for _, x := range []struct {
		set  []string
		want []int
	}{
		{[]string{"eval_every=0", "sample_every=0", "diagnostics_every=0"}, []int{2, 3, 4, 5, 6, 7, 8, 9}},
		{[]string{"eval_every=4", "sample_every=0", "diagnostics_every=0"}, []int{2, 3, 6, 7}},
		{[]string{"eval_every=0", "sample_every=0", "diagnostics_every=5"}, []int{3, 4, 7, 8, 9}},
		{[]string{"eval_every=0", "sample_every=0", "diagnostics_every=0", "accumulation=3"}, []int{2, 3, 4, 5, 6, 7, 8, 9}},
	} {
		tr, err := New(t.Context(), smallRun(t, append(x.set, "steps=10")...), reference.NewBackend())
		require.NoError(t, err)
		var timed []int
		_, err = tr.Run(t.Context(), Hooks{Step: func(m Metrics) error {
			if m.Timed() {
				timed = append(timed, m.Step)
			}
			return nil
		}})
		require.NoError(t, err)
		require.NoError(t, tr.Close())
		require.Equal(t, x.want, timed, x.set)
	}
}

func TestARunReportsEachStepOnce(t *testing.T) {
	cfg := smallRun(t)
	lines, samples, r := trainAll(t, cfg)
	require.Len(t, lines, 6)
	for i, m := range lines {
		require.Equal(t, i+1, m.Step)
		require.Equal(t, int64(32*(i+1)), m.Tokens)
		require.Equal(t, cfg.Resolve().LearningRates().At(i+1), m.LR)
		require.Equal(t, (i+1)%3 == 0, m.Evaluated)
		require.Greater(t, m.GradNorm, 0.0)
		require.InDelta(t, math.Log(280), m.Loss, 1.5, "of a model that knows nothing yet")
	}
	require.Len(t, samples, 1)
	require.NotEmpty(t, samples[0])
	require.Equal(t, 6, r.Steps)
	require.Equal(t, lines[5].ValLoss, r.ValLoss)
	require.False(t, r.Interrupted)

	again, textAgain, _ := trainAll(t, cfg)
	require.Equal(t, lines, again, "the same bits")
	require.Equal(t, samples, textAgain)
	other, _, _ := trainAll(t, smallRun(t, "seed=2"))
	require.NotEqual(t, lines, other)
}

func TestTheWrittenConfigGivesTheSameRun(t *testing.T) {
	tr, err := New(context.Background(), smallRun(t, "accumulation=2", "model.qk_norm=l2", "z_loss=1e-3"), reference.NewBackend())
	require.NoError(t, err)
	text, err := tr.Config().YAML()
	require.NoError(t, err)
	require.NoError(t, tr.Close())
	all, err := ParseConfig("config.yaml", text)
	require.NoError(t, err)
	cfg, err := Load(all)
	require.NoError(t, err)
	require.Equal(t, tr.Config(), cfg.Resolve())
	want, _, _ := trainAll(t, smallRun(t, "accumulation=2", "model.qk_norm=l2", "z_loss=1e-3"))
	got, _, _ := trainAll(t, cfg)
	require.Equal(t, want, got)
}

func TestAccumulatedRunIsTheRunOfLargerBatches(t *testing.T) {
	whole, _, _ := trainAll(t, smallRun(t, "batch=4", "eps=1e-2"))
	parts, _, _ := trainAll(t, smallRun(t, "batch=2", "accumulation=2", "eps=1e-2"))
	for i := range whole {
		require.InDelta(t, whole[i].Loss, parts[i].Loss, 1e-5)
		require.InEpsilon(t, whole[i].GradNorm, parts[i].GradNorm, 1e-4)
		require.Equal(t, whole[i].Tokens, parts[i].Tokens)
	}
}

// countdown is a device that calls do at the submission that the count comes to.
type countdown struct {
	*reference.Backend
	count int
	do    func()
}

type countdownProgram struct {
	backend.Executable
	c *countdown
}

func (c *countdown) Compile(p *graph.Program, s backend.Store) (backend.Executable, error) {
	e, err := c.Backend.Compile(p, s)
	return countdownProgram{e, c}, err
}

func (p countdownProgram) Submit() (backend.Ticket, error) {
	if p.c.count--; p.c.count == 0 {
		p.c.do()
	}
	return p.Executable.Submit()
}

func TestARunThatIsInterruptedWithinAStepGoesOn(t *testing.T) {
	cfg := smallRun(t, "accumulation=3", "steps=4", "eval_every=0", "sample_every=0")
	want, _, _ := trainAll(t, cfg)
	ctx, cancel := context.WithCancel(context.Background())
	tr, err := New(context.Background(), cfg, &countdown{reference.NewBackend(), 4 + 2, cancel}) // three of a step, its update; two of the next
	require.NoError(t, err)
	var got []Metrics
	hooks := Hooks{Step: func(m Metrics) error {
		m.Elapsed, m.Seconds, m.TokensPerSec = 0, 0, 0
		got = append(got, m)
		return nil
	}}
	r, err := tr.Run(ctx, hooks)
	require.NoError(t, err)
	require.True(t, r.Interrupted)
	require.Equal(t, 1, r.Steps)
	require.Equal(t, want[:1], got)
	_, err = tr.Run(context.Background(), hooks)
	require.NoError(t, err)
	require.Equal(t, want, got, "the same bits as without an interruption")
	require.NoError(t, tr.Close())
}

func TestAnInterruptedRunKeepsItsStep(t *testing.T) {
	tr, err := New(context.Background(), smallRun(t), reference.NewBackend())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var lines []Metrics
	r, err := tr.Run(ctx, Hooks{Step: func(m Metrics) error {
		lines = append(lines, m)
		if m.Step == 1 {
			cancel()
		}
		return nil
	}})
	require.NoError(t, err)
	require.True(t, r.Interrupted)
	require.Equal(t, 2, r.Steps, "the step in progress ends")
	require.Len(t, lines, 2, "and is reported")
	dir := t.TempDir()
	require.NoError(t, tr.Save(dir))
	info, err := checkpoint.ReadInfo(dir)
	require.NoError(t, err)
	require.Equal(t, 2, info.Step)
	require.NoError(t, tr.Close())
}

func TestACheckpointWritesWhatTheTrainerWrites(t *testing.T) {
	dev := reference.NewBackend()
	tr, err := New(context.Background(), smallRun(t, "steps=2"), dev)
	require.NoError(t, err)
	_, err = tr.Run(context.Background(), Hooks{})
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, tr.Save(dir))
	ask := Continuation{Prompt: "Once", Tokens: 12, Sampler: Sampler{Temperature: 1}, Seed: 3, PastEnd: true}
	want, err := tr.Write(context.Background(), ask)
	require.NoError(t, err)
	require.NotEmpty(t, want)
	c, err := OpenCheckpoint(context.Background(), dir, dev)
	require.NoError(t, err)
	var pieces strings.Builder
	ask.Each = func(text string) error { pieces.WriteString(text); return nil }
	got, err := c.Write(context.Background(), ask)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, want, pieces.String())
	ask.Draw++
	other, err := c.Write(context.Background(), ask)
	require.NoError(t, err)
	require.NotEqual(t, want, other)
	require.NoError(t, c.Close())
	require.NoError(t, tr.Close())
	require.NoError(t, os.Remove(filepath.Join(dir, checkpoint.TokenizerFile)))
	_, err = OpenCheckpoint(context.Background(), dir, dev)
	require.Error(t, err)
}

// untouched is a device that nothing may be asked of.
type untouched struct{ *reference.Backend }

func (untouched) NewStore([]graph.Var) (backend.Store, error) { panic("memory was taken") }

func TestAHostileCheckpointTakesNoMemory(t *testing.T) {
	tr, err := New(context.Background(), smallRun(t, "steps=1"), reference.NewBackend())
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, tr.Save(dir))
	require.NoError(t, tr.Close())
	good, err := os.ReadFile(filepath.Join(dir, checkpoint.ConfigFile))
	require.NoError(t, err)
	for _, x := range []struct{ key, value, want string }{
		{"d_ff", "10000000", "has the shape"},
		{"n_layers", "1000000", "n_layers: 1000000 is too large: use at most 1024"},
		{"n_layers", "1024", "is missing"},
		{"vocab_size", "16777216", "has the shape"},
	} {
		bad := regexp.MustCompile(`("`+x.key+`": )\d+`).ReplaceAll(good, []byte("${1}"+x.value))
		require.NotEqual(t, good, bad)
		require.NoError(t, os.WriteFile(filepath.Join(dir, checkpoint.ConfigFile), bad, 0o666))
		_, err = OpenCheckpoint(context.Background(), dir, untouched{reference.NewBackend()})
		require.ErrorContains(t, err, x.want)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, checkpoint.ConfigFile), good, 0o666))
	_, err = OpenCheckpoint(context.Background(), dir, narrow{reference.NewBackend(), 1000})
	require.ErrorContains(t, err, "take another device")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = OpenCheckpoint(ctx, dir, reference.NewBackend())
	require.ErrorIs(t, err, context.Canceled)
}

func TestDivergenceNamesTheStepAndTheRemedy(t *testing.T) {
	tr, err := New(context.Background(), smallRun(t, "lr=1e30", "min_lr=1e30", "warmup=0", "clip=0", "weight_decay=0"), reference.NewBackend())
	require.NoError(t, err)
	var lines []Metrics
	_, err = tr.Run(context.Background(), Hooks{Step: func(m Metrics) error { lines = append(lines, m); return nil }})
	require.Len(t, lines, 2, "the step that broke has its line")
	require.ErrorAs(t, err, new(*DivergedError))
	require.ErrorContains(t, err, "training diverged at step 2: the loss is NaN: ")
	require.ErrorContains(t, err, "lower lr (1e+30), set clip to 1 or lengthen warmup (0)")
	require.NoError(t, tr.Close())

	for key, want := range map[string]string{"eval_every": "the validation loss is NaN", "sample_every": "the logits of a sample are not finite"} {
		tr, err = New(context.Background(), smallRun(t, "lr=1e30", "warmup=0", "weight_decay=0", "eval_every=0", "sample_every=0", key+"=1"), reference.NewBackend())
		require.NoError(t, err)
		_, err = tr.Run(context.Background(), Hooks{Sample: func(int, string) error { return nil }})
		require.ErrorContains(t, err, "training diverged at step 1: "+want)
		require.NotContains(t, err.Error(), "clip")
		require.NoError(t, tr.Close())
	}
}

func TestInitialParametersThatOverflow(t *testing.T) {
	for _, x := range []struct{ set, want string }{
		{"model.init=1e60/d", "use another model.init (1e60/d)"}, {"z_loss=1e37", ", or a lower z_loss (1e+37)"},
	} {
		tr, err := New(context.Background(), smallRun(t, x.set), reference.NewBackend())
		require.NoError(t, err)
		_, err = tr.Run(context.Background(), Hooks{})
		require.ErrorContains(t, err, "training diverged at step 1: ")
		require.ErrorContains(t, err, x.want)
		require.NotContains(t, err.Error(), "lower lr")
		require.NoError(t, tr.Close())
	}
}

func TestAHooksErrorEndsTheRun(t *testing.T) {
	tr, err := New(context.Background(), smallRun(t), reference.NewBackend())
	require.NoError(t, err)
	full := errors.New("the disk is full")
	_, err = tr.Run(context.Background(), Hooks{Step: func(Metrics) error { return full }})
	require.ErrorIs(t, err, full)
	require.NoError(t, tr.Close())
}

func TestVocabularies(t *testing.T) {
	tr, err := New(context.Background(), smallRun(t, "model.vocab_size=288", "steps=1"), reference.NewBackend())
	require.NoError(t, err, "a model may have more rows than the tokenizer has tokens")
	_, err = tr.Run(context.Background(), Hooks{})
	require.NoError(t, err)
	text, err := tr.Write(context.Background(), Continuation{Tokens: 30, Sampler: Sampler{Temperature: 3}, PastEnd: true})
	require.NoError(t, err)
	require.NotEmpty(t, text)
	require.NoError(t, tr.Close())
	_, err = New(context.Background(), smallRun(t, "model.vocab_size=270"), reference.NewBackend())
	require.ErrorContains(t, err, "model.vocab_size: 270 is under the tokenizer's 280 tokens")
}

// narrow is a device with little memory.
type narrow struct {
	*reference.Backend
	bytes int64
}

func (n narrow) Info() backend.Info {
	info := n.Backend.Info()
	info.Memory = n.bytes
	return info
}

func TestARunThatCannotFitIsRefused(t *testing.T) {
	_, err := New(context.Background(), smallRun(t), narrow{reference.NewBackend(), 1000})
	require.ErrorContains(t, err, "use a smaller model")
	big := smallRun(t, "model.n_layers=1000", "model.d_model=1536", "data.path=absent")
	_, err = New(context.Background(), big, narrow{reference.NewBackend(), 1 << 30})
	require.ErrorContains(t, err, "use a smaller model", "before the data is read, or a program recorded")
	long := smallRun(t, "batch=4096", "seq_len=4096", "data.path=absent")
	_, err = New(context.Background(), long, narrow{reference.NewBackend(), 1 << 30})
	require.ErrorContains(t, err, "use a smaller batch")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = New(ctx, smallRun(t), reference.NewBackend())
	require.ErrorIs(t, err, context.Canceled)
	_, err = New(context.Background(), smallRun(t, "batch=64"), narrow{reference.NewBackend(), 1 << 20})
	require.ErrorContains(t, err, "use a smaller batch with more accumulation, a smaller seq_len, recompute: block or a smaller model")
	_, err = New(context.Background(), smallRun(t, "batch=1", "seq_len=2048", "recompute=block"), narrow{reference.NewBackend(), 1 << 20})
	require.ErrorContains(t, err, ": use a smaller seq_len or a smaller model", "what is not done already")
	tr, err := New(context.Background(), smallRun(t), narrow{reference.NewBackend(), 1 << 30})
	require.NoError(t, err)
	require.NoError(t, tr.Close())
}

func TestIndependentDecayIsThatOfThePeakRate(t *testing.T) {
	coupled, _, _ := trainAll(t, smallRun(t, "lr=0.25", "weight_decay=0.5"))
	independent, _, _ := trainAll(t, smallRun(t, "lr=0.25", "weight_decay=0.125", "independent_decay=true"))
	require.Equal(t, coupled, independent)
	other, _, _ := trainAll(t, smallRun(t, "lr=0.25", "weight_decay=0.125"))
	require.NotEqual(t, other, independent)
}

func TestTheLengthsOfDocumentsSetTheScale(t *testing.T) {
	end := int32(9)
	tokens := []int32{9}
	for n := 1; n <= 40; n++ { // in no order: 3, 6, ... modulo 41
		for range 3 * n % 41 {
			tokens = append(tokens, 1)
		}
		tokens = append(tokens, end)
	}
	for percentile, want := range map[float64]int{97.5: 39, 100: 40, 50: 20, 1: 1, 2.6: 2} {
		require.Equal(t, want, lengthPercentile(tokens, end, percentile), "%g", percentile)
	}
	require.Equal(t, 2, lengthPercentile([]int32{1, 1}, end, 50), "a text without an end")

	tr, err := New(context.Background(), smallRun(t, "model.qk_norm=l2", "qk_scale_percentile=50", "seq_len=64"), reference.NewBackend())
	require.NoError(t, err)
	defer func() { require.NoError(t, tr.Close()) }()
	l := tr.Config().Model.QKScaleLength
	require.Greater(t, l, 2)
	require.LessOrEqual(t, l, 64)
	raw := make([]byte, 4)
	require.NoError(t, tr.store.Read("model.layers.0.self_attn.qk_scale", raw))
	require.Equal(t, float32(math.Log2(float64(l*l-l))), math.Float32frombits(binary.LittleEndian.Uint32(raw)))
}
