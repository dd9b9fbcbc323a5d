package train

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/rng"
)

func TestGeneratorContinuesPastItsWindow(t *testing.T) {
	m := smallModel(t)
	dev := reference.NewBackend()
	p, err := LogitsProgram(m, ProgramOptions{Batch: 1})
	require.NoError(t, err)
	store, err := dev.NewStore(Vars(p))
	require.NoError(t, err)
	for _, q := range m.Params() {
		require.NoError(t, store.Write(q.Name, initial(q)))
	}
	g, err := NewGenerator(dev, store, m, graph.F32)
	require.NoError(t, err)
	run := func(prompt []int32, r Request) []int32 {
		r.Prompt = prompt
		got, err := g.Run(context.Background(), r)
		require.NoError(t, err)
		return got
	}

	// Greedy tokens, computed one at a time from a program of exactly the text's length, so that nothing is padded or shifted.
	text := []int32{3, 1}
	for range 9 {
		window := text[max(0, len(text)-m.SeqLen):]
		p, err := LogitsProgram(m, ProgramOptions{Batch: 1, SeqLen: len(window)})
		require.NoError(t, err)
		exe, err := dev.Compile(p, store)
		require.NoError(t, err)
		require.NoError(t, exe.Feed(InputTokens, intBytes(window)))
		require.NoError(t, exe.Feed(InputRows, intBytes([]int32{int32(len(window) - 1)})))
		tick, err := exe.Submit()
		require.NoError(t, err)
		raw := make([]byte, 4*m.VocabSize)
		require.NoError(t, exe.Fetch(tick, OutputLogits, raw))
		best, logits := 0, floats(raw)
		for i := range logits {
			if logits[i] > logits[best] {
				best = i
			}
		}
		text = append(text, int32(best))
	}
	require.Equal(t, text[2:], run([]int32{3, 1}, Request{Tokens: 9}))

	hot := func(seed uint64, usable int) Request {
		return Request{Tokens: 9, Sampler: Sampler{Temperature: 5}, Draws: rng.New(seed), Usable: usable}
	}
	require.Equal(t, run([]int32{2}, hot(1, 0)), run([]int32{2}, hot(1, 0)), "the draws decide, and what ran before does not")
	require.NotEqual(t, run([]int32{2}, hot(1, 0)), run([]int32{2}, hot(2, 0)))
	for _, token := range run([]int32{2}, hot(1, 4)) {
		require.Less(t, token, int32(4))
	}
	stopped := run([]int32{3, 1}, Request{Tokens: 9, Stop: func(token int32) bool { return token == text[6] }})
	require.LessOrEqual(t, len(stopped), 4)
	require.NotContains(t, stopped, text[6])

	_, err = g.Run(context.Background(), Request{Tokens: 1})
	require.Error(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	got, err := g.Run(ctx, Request{Prompt: []int32{1}, Tokens: 9, Each: func(int32) error { cancel(); return nil }})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, got, 1)
	wrong := errors.New("the pipe is closed")
	_, err = g.Run(context.Background(), Request{Prompt: []int32{1}, Tokens: 9, Each: func(int32) error { return wrong }})
	require.ErrorIs(t, err, wrong)
}

func TestWholeCharactersAndNothingForTheTerminal(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
	}{{"", 0}, {"ab", 2}, {"é", 2}, {"aé"[:2], 1}, {"a€"[:3], 1}, {"a𝄞"[:4], 1}, {"a𝄞", 5}, {"\xff", 1}, {"\x80\x80", 2}} {
		require.Equal(t, c.want, wholeRunes(c.text), "%q", c.text)
	}
	require.Equal(t, "a\n\tb\uFFFD[31m\uFFFD", printable("a\n\tb\x1b[31m\xff"))
}
