package train

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/checkpoint"
	"github.com/vktrain/vktrain/data"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/rng"
	"github.com/vktrain/vktrain/tasks"
)

// Continuation asks for text.
type Continuation struct {
	Prompt  string // empty: a text from its beginning
	Tokens  int    // at most this many are added
	Sampler Sampler
	Seed    uint64
	Draw    uint64                  // tells texts of one seed apart
	PastEnd bool                    // go on after an end of text, with a text of its own
	Each    func(text string) error // called with each piece as soon as it is whole characters; may be nil
}

// write continues a prompt and returns what was added. What is no text, such as half a character, becomes U+FFFD.
func write(ctx context.Context, g *Generator, tok data.Tokenizer, c Continuation) (string, error) {
	r := Request{
		Prompt: append([]int32{tok.EndOfText()}, tok.Encode(c.Prompt)...), Tokens: c.Tokens,
		Sampler: c.Sampler, Draws: rng.New(c.Seed, "sample", rng.Num(c.Draw)), Usable: tok.VocabSize(),
	}
	if !c.PastEnd {
		r.Stop = func(token int32) bool { return token == tok.EndOfText() }
	}
	var all strings.Builder
	give := func(raw string) error {
		text := printable(raw)
		all.WriteString(text)
		if c.Each == nil || text == "" {
			return nil
		}
		return c.Each(text)
	}
	held := "" // the begin of a character whose other bytes are still to come
	r.Each = func(token int32) error {
		if token == tok.EndOfText() {
			held += "\n\n"
		} else {
			held += tok.Decode([]int32{token})
		}
		n := wholeRunes(held)
		piece := held[:n]
		held = held[n:]
		return give(piece)
	}
	_, err := g.Run(ctx, r)
	if err == nil {
		err = give(held)
	}
	return all.String(), err
}

// wholeRunes is the length of s without the beginning of a character at its end.
func wholeRunes(s string) int {
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		tail := s[len(s)-n:]
		if utf8.RuneStart(tail[0]) {
			if !utf8.FullRuneInString(tail) {
				return len(s) - n
			}
			break
		}
	}
	return len(s)
}

// printable replaces what is not UTF-8, and control characters, which a terminal may obey.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
}

// saveCheckpoint writes parameters, config and tokenizer.
func saveCheckpoint(dir string, info checkpoint.Info, store backend.Store, tok data.Tokenizer) error {
	if err := tok.Save(filepath.Join(dir, checkpoint.TokenizerFile)); err != nil {
		return fmt.Errorf("the checkpoint can't be written: %w", err)
	}
	if err := checkpoint.Save(dir, info, store); err != nil {
		return fmt.Errorf("the checkpoint can't be written: %w", err)
	}
	return nil
}

// Checkpoint is a model that was read from a folder, on a device, ready to write text and to be scored.
type Checkpoint struct {
	Info      checkpoint.Info
	Tokenizer data.Tokenizer
	dev       backend.Backend
	store     backend.Store
	generate  *Generator
}

// OpenCheckpoint reads a folder that a run has left. It gives up when ctx is done.
func OpenCheckpoint(ctx context.Context, dir string, dev backend.Backend) (*Checkpoint, error) {
	info, err := checkpoint.ReadInfo(dir)
	if err != nil {
		return nil, err
	}
	tok, err := data.LoadTokenizer(filepath.Join(dir, checkpoint.TokenizerFile))
	if err != nil {
		return nil, err
	}
	if tok.VocabSize() > info.Model.VocabSize {
		return nil, fmt.Errorf("%s: the tokenizer has %d tokens, the model %d: they are not of one run", dir, tok.VocabSize(), info.Model.VocabSize)
	}
	if err := checkpoint.CheckParams(dir, info); err != nil { // before config.json makes us take memory
		return nil, err
	}
	c := &Checkpoint{Info: info, Tokenizer: tok, dev: dev}
	p, err := LogitsProgram(info.Model, ProgramOptions{Batch: 1})
	if err != nil {
		return nil, err
	}
	if need := MemoryOn(dev, p); need.Check(dev.Info()) != nil {
		return nil, fmt.Errorf("%s: %w", dir, &MemoryError{need, dev.Info(), "take another device, or train a smaller model"})
	}
	if c.store, err = dev.NewStore(p.Vars()); err != nil {
		return nil, err
	}
	if err := checkpoint.ReadParams(ctx, dir, info, c.store); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if c.generate, err = NewGenerator(dev, c.store, info.Model, graph.F32); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Write continues a prompt and returns what was added.
func (c *Checkpoint) Write(ctx context.Context, text Continuation) (string, error) {
	return write(ctx, c.generate, c.Tokenizer, text)
}

// scoredTokens is about how many tokens a checkpoint is scored on at once.
const scoredTokens = 2048

// Score gives the results of tasks, in their order, with activations in float32. It gives up when ctx is done; tell, where it is not nil, is called as requests of
// a task are done.
func (c *Checkpoint) Score(ctx context.Context, list []tasks.Task, tell func(task string, done, all int)) ([]tasks.Result, error) {
	window := c.Info.Model.SeqLen
	all, err := allPassages(list, c.Tokenizer, window)
	if err != nil {
		return nil, err
	}
	o := ProgramOptions{Batch: max(1, scoredTokens/window), SeqLen: window}
	programs, err := scorePrograms(c.Info.Model, o)
	if err != nil {
		return nil, err
	}
	if need := MemoryOn(c.dev, programs...); need.Check(c.dev.Info()) != nil {
		return nil, &MemoryError{need, c.dev.Info(), "take another device, or train a smaller model"}
	}
	return NewScorer(c.dev, c.store, c.Info.Model, o).score(ctx, all, tell)
}

// Close frees what OpenCheckpoint made, not the device.
func (c *Checkpoint) Close() error {
	var errs []error
	if c.generate != nil {
		errs = append(errs, c.generate.Close())
	}
	return errors.Join(append(errs, c.store.Close())...)
}
