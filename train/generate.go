package train

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
	"github.com/vktrain/vktrain/rng"
)

// Generator continues a text with the parameters of a store. It sees at most the model's seq_len last tokens, and computes all of them
// for each new one.
type Generator struct {
	exe    backend.Executable
	window int
	vocab  int
	tokens []int32 // what the program is fed
	raw    []byte
	logits []float32
}

// NewGenerator compiles LogitsProgram over a store that has the model's parameters, matrices in the masters' format.
func NewGenerator(dev backend.Backend, store backend.Store, cfg model.Config, masters graph.DType) (*Generator, error) {
	p, err := LogitsProgram(cfg, ProgramOptions{Batch: 1, Masters: masters})
	if err != nil {
		return nil, err
	}
	exe, err := dev.Compile(p, store)
	if err != nil {
		return nil, fmt.Errorf("generating does not compile: %w", err)
	}
	return &Generator{
		exe: exe, window: cfg.SeqLen, vocab: cfg.VocabSize,
		tokens: make([]int32, cfg.SeqLen), raw: make([]byte, 4*cfg.VocabSize), logits: make([]float32, cfg.VocabSize),
	}, nil
}

// Request is a text to continue.
type Request struct {
	Prompt  []int32 // at least one token
	Tokens  int     // how many to add
	Sampler Sampler
	Draws   *rng.Rand // one number for each new token; nil if the sampler's temperature is 0
	Usable  int       // only tokens below this number are chosen: the tokenizer's size; 0: the model's
	Stop    func(token int32) bool
	Each    func(token int32) error // called with each new token, except the one that stops
}

// Run returns the new tokens. When ctx is done, it returns those it has and the context's error.
func (g *Generator) Run(ctx context.Context, r Request) ([]int32, error) {
	if len(r.Prompt) == 0 {
		return nil, errors.New("generating needs at least one token to begin with")
	}
	usable := r.Usable
	if usable == 0 {
		usable = g.vocab
	}
	text := append([]int32(nil), r.Prompt...)
	for range r.Tokens {
		if err := ctx.Err(); err != nil {
			return text[len(r.Prompt):], err
		}
		logits, err := g.next(text)
		if err != nil {
			return nil, err
		}
		u := 0.0
		if r.Draws != nil {
			u = r.Draws.Float64()
		}
		k, err := r.Sampler.Pick(logits[:usable], u)
		if err != nil {
			return nil, err
		}
		token := int32(k)
		if r.Stop != nil && r.Stop(token) {
			break
		}
		text = append(text, token)
		if r.Each != nil {
			if err := r.Each(token); err != nil {
				return nil, err
			}
		}
	}
	return text[len(r.Prompt):], nil
}

// next gives the logits of what follows text.
func (g *Generator) next(text []int32) ([]float32, error) {
	n := min(len(text), g.window)
	copy(g.tokens, text[len(text)-n:])
	clear(g.tokens[n:])
	if err := g.exe.Feed(InputTokens, intBytes(g.tokens)); err != nil {
		return nil, err
	}
	if err := g.exe.Feed(InputRows, intBytes([]int32{int32(n - 1)})); err != nil {
		return nil, err
	}
	tick, err := g.exe.Submit()
	if err != nil {
		return nil, err
	}
	if err := g.exe.Fetch(tick, OutputLogits, g.raw); err != nil {
		return nil, err
	}
	for i := range g.logits {
		g.logits[i] = math.Float32frombits(binary.LittleEndian.Uint32(g.raw[4*i:]))
	}
	return g.logits, nil
}

// Close frees the program.
func (g *Generator) Close() error { return g.exe.Close() }

// appendBF16 rounds finite numbers to nearest even.
func appendBF16(raw []byte, x []float32) []byte {
	for _, f := range x {
		b := math.Float32bits(f)
		raw = binary.LittleEndian.AppendUint16(raw, uint16((b+0x7fff+b>>16&1)>>16))
	}
	return raw
}

func appendFloats(raw []byte, x []float32) []byte {
	for _, f := range x {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(f))
	}
	return raw
}
