package train

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
)

// ScoreProgram gives the loss of every position, without z-loss.
func ScoreProgram(cfg model.Config, o ProgramOptions) (*graph.Program, error) {
	cfg, o, err := o.check(cfg)
	if err != nil {
		return nil, err
	}
	b := graph.NewBuilder()
	tokens := b.Input(InputTokens, graph.I32, o.Batch, o.SeqLen)
	targets := b.Input(InputTargets, graph.I32, o.Batch, o.SeqLen)
	f := cfg.Trunk(b, tokens, o.Storage, o.Masters)
	b.Output(OutputLosses, cfg.Losses(b, f, targets, model.LossOptions{ChunkRows: o.ChunkRows}))
	return b.Build("score"), nil
}

// Passage is tokens whose last ones are scored.
type Passage struct {
	Tokens []int32 // at most one more than the model's seq_len
	Scored int     // how many at the end: at least 1, and fewer than all
}

// Scorer computes log-likelihoods with the parameters of a store.
type Scorer struct {
	dev     backend.Backend
	store   backend.Store
	cfg     model.Config
	options ProgramOptions
	// Progress, where it is not nil, is called as passages are done.
	Progress func(done, all int)
}

// NewScorer is of a store that has the model's parameters. Its programs take as many tokens at once as the options have in a batch of the model's seq_len.
func NewScorer(dev backend.Backend, store backend.Store, cfg model.Config, o ProgramOptions) *Scorer {
	o.SeqLen = cfg.SeqLen
	return &Scorer{dev: dev, store: store, cfg: cfg, options: o}
}

// shortest is the sequence length in tokens below which no program of its own is worth its making.
const shortest = 32

// buckets are options for passages of several lengths, from the shortest: a program half as long has twice as many sequences.
func (o ProgramOptions) buckets() []ProgramOptions {
	all := []ProgramOptions{o}
	for all[0].SeqLen > shortest {
		half := all[0]
		half.SeqLen, half.Batch = (half.SeqLen+1)/2, half.Batch*2
		all = slices.Insert(all, 0, half)
	}
	return all
}

// scorePrograms are those that a Scorer may compile.
func scorePrograms(cfg model.Config, o ProgramOptions) ([]*graph.Program, error) {
	var all []*graph.Program
	for _, b := range o.buckets() {
		p, err := ScoreProgram(cfg, b)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// LogLikelihoods gives, for each passage, the sum of the logarithms of its scored tokens' probabilities, in nats. It gives up when ctx is done.
func (s *Scorer) LogLikelihoods(ctx context.Context, passages []Passage) ([]float64, error) {
	sums := make([]float64, len(passages))
	shorter, done := 0, 0
	for _, o := range s.options.buckets() {
		var of []int // the passages of this length
		for i, p := range passages {
			if n := len(p.Tokens) - 1; n > shorter && n <= o.SeqLen {
				of = append(of, i)
			}
		}
		shorter = o.SeqLen
		if len(of) == 0 {
			continue
		}
		tell := func(n int) {
			if done += n; s.Progress != nil {
				s.Progress(done, len(passages))
			}
		}
		if err := s.bucket(ctx, o, passages, of, sums, tell); err != nil {
			return nil, err
		}
	}
	if done < len(passages) {
		panic("train: a passage does not fit the model's window")
	}
	return sums, nil
}

// bucket scores the passages of one length.
func (s *Scorer) bucket(ctx context.Context, o ProgramOptions, passages []Passage, of []int, sums []float64, tell func(int)) (err error) {
	p, err := ScoreProgram(s.cfg, o)
	if err != nil {
		return err
	}
	exe, err := s.dev.Compile(p, s.store)
	if err != nil {
		return fmt.Errorf("the scoring does not compile: %w", err)
	}
	defer func() {
		if e := exe.Close(); err == nil {
			err = e
		}
	}()
	raw := make([]byte, 4*o.Batch*o.SeqLen)
	read := func(tick backend.Ticket, rows []int) error {
		if err := exe.Fetch(tick, OutputLosses, raw); err != nil {
			return err
		}
		for row, i := range rows {
			sums[i] = -sumFloats(raw[4*row*o.SeqLen : 4*(row+1)*o.SeqLen])
		}
		tell(len(rows))
		return nil
	}
	var tick backend.Ticket
	var before []int // submitted with tick
	for rows := range slices.Chunk(of, o.Batch) {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := scoreBatch(o, passages, rows)
		if err := b.check(s.cfg.VocabSize); err != nil {
			return err
		}
		if err := exe.Feed(InputTokens, intBytes(b.Tokens)); err != nil {
			return err
		}
		if err := exe.Feed(InputTargets, intBytes(b.Targets)); err != nil {
			return err
		}
		now, err := exe.Submit()
		if err != nil {
			return err
		}
		if before != nil {
			if err := read(tick, before); err != nil {
				return err
			}
		}
		tick, before = now, rows
	}
	return read(tick, before)
}

// scoreBatch lays passages out, one a sequence from its beginning. Attention is causal, so that what stands after them does not matter; it is no target.
func scoreBatch(o ProgramOptions, passages []Passage, rows []int) Batch {
	b := Batch{make([]int32, o.Batch*o.SeqLen), make([]int32, o.Batch*o.SeqLen)}
	for i := range b.Targets {
		b.Targets[i] = graph.IgnoreTarget
	}
	for row, i := range rows {
		tokens, scored := passages[i].Tokens, passages[i].Scored
		n := len(tokens) - 1
		copy(b.Tokens[row*o.SeqLen:], tokens[:n])
		copy(b.Targets[row*o.SeqLen+n-scored:], tokens[len(tokens)-scored:])
	}
	return b
}

func sumFloats(raw []byte) (sum float64) {
	for ; len(raw) > 0; raw = raw[4:] {
		sum += float64(math.Float32frombits(binary.LittleEndian.Uint32(raw)))
	}
	return sum
}
