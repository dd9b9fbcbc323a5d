package train

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/backend/cpu"
	"github.com/vktrain/vktrain/data"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
	"github.com/vktrain/vktrain/tasks"
)

// scoredModel has a window over which there are three lengths of programs: 32, 64 and 127 tokens.
func scoredModel(t *testing.T) model.Config {
	m := smallModel(t)
	m.SeqLen = 127
	return m
}

// newScoredStore has the initial parameters.
func newScoredStore(t *testing.T, dev backend.Backend, m model.Config) backend.Store {
	t.Helper()
	p, err := LogitsProgram(m, ProgramOptions{Batch: 1})
	require.NoError(t, err)
	store, err := dev.NewStore(Vars(p))
	require.NoError(t, err)
	for _, q := range m.Params() {
		require.NoError(t, store.Write(q.Name, initial(q)))
	}
	return store
}

// randomPassages are of lengths around those of the programs, from the shortest to the window's.
func randomPassages(m model.Config) []Passage {
	random := rand.New(rand.NewPCG(3, 4))
	var all []Passage
	for _, n := range []int{2, 3, 31, 33, 34, 7, 65, 66, 13, 128, 100, 128, 2} {
		p := Passage{Scored: 1 + random.IntN(n-1)}
		for range n {
			p.Tokens = append(p.Tokens, random.Int32N(int32(m.VocabSize)))
		}
		all = append(all, p)
	}
	all[9].Scored, all[11].Scored = 127, 1
	return all
}

// fromLogits is a passage's log-likelihood by the softmax, in float64, of the logits that LogitsProgram gives before each scored token.
func fromLogits(t *testing.T, dev backend.Backend, store backend.Store, m model.Config, p Passage) (sum, largest float64) {
	t.Helper()
	n := len(p.Tokens) - 1
	prog, err := LogitsProgram(m, ProgramOptions{Batch: 1, SeqLen: n})
	require.NoError(t, err)
	exe, err := dev.Compile(prog, store)
	require.NoError(t, err)
	defer func() { require.NoError(t, exe.Close()) }()
	for at := n - p.Scored; at < n; at++ {
		require.NoError(t, exe.Feed(InputTokens, intBytes(p.Tokens[:n])))
		require.NoError(t, exe.Feed(InputRows, intBytes([]int32{int32(at)})))
		tick, err := exe.Submit()
		require.NoError(t, err)
		raw := make([]byte, 4*m.VocabSize)
		require.NoError(t, exe.Fetch(tick, OutputLogits, raw))
		logits, total := floats(raw), 0.0
		for _, x := range logits {
			total += math.Exp(x)
			largest = max(largest, math.Abs(x))
		}
		sum += logits[p.Tokens[at+1]] - math.Log(total)
	}
	return sum, largest
}

// likelihoodBound is how far two log-likelihoods of a passage may be apart. A logit that is off by r times the largest puts its loss off by 2 r times that; and the
// loss itself, of at most twice the largest and log V, is rounded to float32. For one program in float64 whose outputs are rounded, r is eps = 2^-24. For two in float32
// that add in other orders it is to first order, for each, eps times the terms of the sums in series: D for the logit, and for each layer D twice (the projections
// in), F, and T and D of attention.
func likelihoodBound(m model.Config, p Passage, largest float64, inFloat32 bool) float64 {
	const eps = 1.0 / (1 << 24)
	r := eps
	if inFloat32 {
		r = 2 * eps * float64(m.DModel+m.NLayers*(3*m.DModel+m.DFF+m.SeqLen))
	}
	return float64(p.Scored) * (2*r*largest + eps*(2*largest+math.Log(float64(m.VocabSize))))
}

func TestLogLikelihoodsAreThoseOfTheLogits(t *testing.T) {
	m := scoredModel(t)
	all := randomPassages(m)
	cpu, err := cpu.New(cpu.Options{Threads: 1})
	require.NoError(t, err)
	for _, dev := range []backend.Backend{reference.NewBackend(), cpu} {
		store := newScoredStore(t, dev, m)
		got, err := NewScorer(dev, store, m, ProgramOptions{Batch: 2}).LogLikelihoods(context.Background(), all)
		require.NoError(t, err)
		worst := 0.0
		for i, p := range all {
			want, largest := fromLogits(t, dev, store, m, p)
			bound := likelihoodBound(m, p, largest, dev == cpu)
			require.InDelta(t, want, got[i], bound, "passage %d of %d tokens, %d scored", i, len(p.Tokens), p.Scored)
			worst = max(worst, math.Abs(got[i]-want)/bound)
			require.Less(t, got[i], 0.0)
		}
		t.Logf("%s: %.3f of the bound", dev.Info(), worst)
	}
	require.NoError(t, cpu.Close())
}

// In float64 neither the batch nor the place in it, nor logits in chunks, change a bit of the outputs in float32.
func TestBatchesAndOrderChangeNothing(t *testing.T) {
	m := scoredModel(t)
	all := randomPassages(m)
	dev := reference.NewBackend()
	store := newScoredStore(t, dev, m)
	want, err := NewScorer(dev, store, m, ProgramOptions{Batch: 1}).LogLikelihoods(context.Background(), all)
	require.NoError(t, err)
	order := rand.New(rand.NewPCG(5, 6)).Perm(len(all))
	var shuffled []Passage
	for _, i := range order {
		shuffled = append(shuffled, all[i])
	}
	for _, o := range []ProgramOptions{{Batch: 1}, {Batch: 2}, {Batch: 3, ChunkRows: model.RowsUnit}, {Batch: 16}} {
		s := NewScorer(dev, store, m, o)
		calls := 0
		s.Progress = func(done, of int) {
			calls++
			require.Equal(t, len(all), of)
			require.LessOrEqual(t, done, of)
		}
		got, err := s.LogLikelihoods(context.Background(), shuffled)
		require.NoError(t, err)
		require.NotZero(t, calls)
		for at, i := range order {
			require.Equal(t, want[i], got[at], "batch %d, passage %d", o.Batch, i)
		}
	}
}

func TestAScorerGivesUp(t *testing.T) {
	m := scoredModel(t)
	dev := reference.NewBackend()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := NewScorer(dev, newScoredStore(t, dev, m), m, ProgramOptions{Batch: 1}).LogLikelihoods(ctx, randomPassages(m))
	require.ErrorIs(t, err, context.Canceled)
}

// document is a task of one document, on line 1 of f.
func document(context string, choices ...string) tasks.Task {
	return tasks.Task{Name: "x", File: "f", Documents: []tasks.Document{{Contexts: []string{context}, Choices: choices, Line: 1}}}
}

func TestPassagesAreEndOfTextContextAndContinuation(t *testing.T) {
	end := data.Byte{}.EndOfText()
	got, cut, err := Passages(document("ab \n", "c", "de"), data.Byte{}, 9)
	require.NoError(t, err)
	require.Zero(t, cut)
	require.Equal(t, []Passage{
		{[]int32{end, 'a', 'b', ' ', '\n', ' ', 'c'}, 4}, // with the white space of the context's end
		{[]int32{end, 'a', 'b', ' ', '\n', ' ', 'd', 'e'}, 5},
	}, got)

	got, cut, err = Passages(document("", "c", "de"), data.Byte{}, 9)
	require.NoError(t, err)
	require.Zero(t, cut)
	require.Equal(t, []Passage{{[]int32{end, ' ', 'c'}, 2}, {[]int32{end, ' ', 'd', 'e'}, 3}}, got)

	got, cut, err = Passages(document("abcdef", "g", "hi"), data.Byte{}, 5)
	require.NoError(t, err)
	require.Equal(t, 2, cut, "contexts lose their beginning")
	require.Equal(t, []Passage{{[]int32{'c', 'd', 'e', 'f', ' ', 'g'}, 2}, {[]int32{'d', 'e', 'f', ' ', 'h', 'i'}, 3}}, got)

	_, _, err = Passages(document("ab", "cdef", "g"), data.Byte{}, 5)
	require.NoError(t, err)
	_, _, err = Passages(document("ab", "g", "cdefg"), data.Byte{}, 5)
	require.EqualError(t, err, "f:1: choice 2 has 6 tokens, and the model sees 5: take a model with a longer seq_len, or a lower limit, or leave the document out")
}

// taskFile is four documents whose right choice is b.
func taskFile(t *testing.T, choices string) string {
	path := filepath.Join(t.TempDir(), "mine.jsonl")
	var text []byte
	for range 4 {
		text = append(text, `{"context": "one day", "choices": [`+choices+`], "gold": 1}`+"\n"...)
	}
	require.NoError(t, os.WriteFile(path, text, 0o666))
	return path
}

func TestARunIsScoredAfterItsLastStep(t *testing.T) {
	path := taskFile(t, `"qqq", "the"`)
	cfg := smallRun(t, "tasks.files="+path, "tasks.limit=3", "seq_len=16")
	dev := reference.NewBackend()
	tr, err := New(context.Background(), cfg, dev)
	require.NoError(t, err)
	var lines []Metrics
	dir, scored := t.TempDir(), 0
	r, err := tr.Run(context.Background(), Hooks{
		Step:  func(m Metrics) error { lines = append(lines, m); return nil },
		Score: func() error { scored++; return tr.Save(dir) }, // so that a run that is killed while it is scored has its model
	})
	require.NoError(t, err)
	require.Equal(t, 1, scored)
	for _, m := range lines[:5] {
		require.Nil(t, m.Tasks)
	}
	require.Equal(t, lines[5].Tasks, r.Last.Tasks)
	require.Len(t, r.Last.Tasks, 1)
	got := r.Last.Tasks[0]
	require.Equal(t, "mine", got.Task)
	require.Equal(t, 3, got.N)
	require.Equal(t, 0.5, got.Chance)

	// by the checkpoint that it leaves, with other batches
	c, err := OpenCheckpoint(context.Background(), dir, dev)
	require.NoError(t, err)
	require.Equal(t, 6, c.Info.Step)
	list, err := tasks.Load([]string{path}, 3)
	require.NoError(t, err)
	told := ""
	again, err := c.Score(context.Background(), list, func(task string, _, _ int) { told = task })
	require.NoError(t, err)
	require.Equal(t, r.Last.Tasks, again)
	require.Equal(t, "mine", told)
	require.NoError(t, c.Close())
	require.NoError(t, tr.Close())

	plain, _, _ := trainAll(t, smallRun(t))
	require.Equal(t, plain[5].Loss, lines[5].Loss, "and training has the same bits as without tasks")
	require.Equal(t, plain[5].ValLoss, lines[5].ValLoss)
}

func TestARunThatIsInterruptedWhileItIsScoredSaysSo(t *testing.T) {
	tr, err := New(context.Background(), smallRun(t, "tasks.files="+taskFile(t, `"qqq", "the"`)), reference.NewBackend())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var last Metrics
	r, err := tr.Run(ctx, Hooks{
		Step:  func(m Metrics) error { last = m; return nil },
		Score: func() error { cancel(); return nil },
	})
	require.NoError(t, err)
	require.True(t, r.Interrupted)
	require.Equal(t, 6, r.Steps)
	require.Equal(t, 6, last.Step, "the step is reported")
	require.True(t, last.Evaluated)
	require.Empty(t, last.Tasks)
	require.NoError(t, tr.Close())
}

func TestTasksThatCannotBeEndARunBeforeItsData(t *testing.T) {
	_, err := New(context.Background(), smallRun(t, "tasks.files=absent.jsonl", "data.path=absent.txt"), reference.NewBackend())
	require.ErrorContains(t, err, "tasks.files: absent.jsonl does not exist")
	long := taskFile(t, `"a", "Once upon a time there was a small dog and it ran and ran and ran and ran and ran"`)
	_, err = New(context.Background(), smallRun(t, "tasks.files="+long), reference.NewBackend())
	require.ErrorContains(t, err, "tasks.files: "+long+":1: choice 2 has ")
	_, err = Load(assign(t, "tasks.files=a,,b"))
	require.EqualError(t, err, `tasks.files: "a,,b" has an empty path: join paths by commas, one between two`)
	_, err = Load(assign(t, "tasks.limit=-1"))
	require.EqualError(t, err, "tasks.limit: -1 is too small: use at least 0")
	c, err := Load(assign(t, "tasks.files= a.jsonl, b.jsonl "))
	require.NoError(t, err)
	require.Equal(t, []string{"a.jsonl", "b.jsonl"}, c.Tasks.Paths())
}

func TestScoringCountsInTheMemory(t *testing.T) {
	cfg := smallRun(t).Resolve()
	cfg.Model.VocabSize = 280
	programs, err := cfg.withEvaluation(nil)
	require.NoError(t, err)
	cfg.Tasks.Files = "x"
	more, err := cfg.withEvaluation(nil)
	require.NoError(t, err)
	require.Len(t, more, len(programs)+1, "a window of 16 has one program")
	cfg.SeqLen, cfg.Model.SeqLen = 100, 100
	more, err = cfg.withEvaluation(nil)
	require.NoError(t, err)
	var shapes []graph.Shape
	for _, p := range more[len(programs):] {
		shapes = append(shapes, p.Inputs()[0].Shape())
	}
	require.Equal(t, []graph.Shape{{8, 25}, {4, 50}, {2, 100}}, shapes)
	require.True(t, slices.IsSortedFunc(shapes, func(a, b graph.Shape) int { return a[1] - b[1] }))
}
