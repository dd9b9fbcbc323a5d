package data

import (
	"fmt"

	"github.com/vktrain/vktrain/rng"
)

// Ignored is the target where there is nothing to predict: a loss leaves it out.
const Ignored = -100

// Batches deals out training sequences, for ever. In each epoch the tokens are cut into windows of seqLen tokens that do not overlap,
// from an offset that is random from epoch to epoch, and dealt in random order; what remains of an epoch's windows when they do not fill
// a batch begins the batch that the next epoch completes.
type Batches struct {
	tokens        []int32
	seqLen, batch int
	seed          uint64
	state         BatchState
	offset        int   // of the epoch
	order         []int // of its windows
}

// BatchState is the position in the stream of batches: together with the tokens, sizes and seed it determines all batches to come.
type BatchState struct {
	Epoch uint64 `json:"epoch"`
	Index int    `json:"index"` // windows of the epoch that have been dealt
}

// NewBatches deals batch sequences of seqLen tokens at a time. It is an error if tokens, which are kept, hold none.
func NewBatches(tokens []int32, seqLen, batch int, seed uint64) (*Batches, error) {
	checkSizes(seqLen, batch)
	if len(tokens) <= seqLen {
		return nil, fmt.Errorf("the training text has %d tokens, but a sequence of %d tokens and the token after it take %d: give more text or a smaller seq_len",
			len(tokens), seqLen, seqLen+1)
	}
	b := &Batches{tokens: tokens, seqLen: seqLen, batch: batch, seed: seed}
	b.shuffle()
	return b, nil
}

func checkSizes(seqLen, batch int) {
	if seqLen < 1 || batch < 1 {
		panic("data: batch or sequence length under 1")
	}
}

// shuffle begins the epoch of the state.
func (b *Batches) shuffle() {
	r := rng.New(b.seed, "batches", rng.Num(b.state.Epoch))
	spare := len(b.tokens) - 1 - b.seqLen // tokens beside one window
	b.offset = r.IntN(min(b.seqLen, spare+1))
	b.order = r.Perm((len(b.tokens) - 1 - b.offset) / b.seqLen)
}

// Next fills tokens and their targets, each (B, T).
func (b *Batches) Next(tokens, targets []int32) {
	if n := b.batch * b.seqLen; len(tokens) != n || len(targets) != n {
		panic("data: tokens or targets are not of batch times sequence length")
	}
	for row := 0; row < len(tokens); row += b.seqLen {
		if b.state.Index == len(b.order) {
			b.state = BatchState{Epoch: b.state.Epoch + 1}
			b.shuffle()
		}
		at := b.offset + b.order[b.state.Index]*b.seqLen
		copy(tokens[row:row+b.seqLen], b.tokens[at:])
		copy(targets[row:row+b.seqLen], b.tokens[at+1:])
		b.state.Index++
	}
}

// State is the position of the batch to come.
func (b *Batches) State() BatchState { return b.state }

// Restore goes to a position that State gave for the same tokens, sizes and seed. It is an error if it cannot be of those.
func (b *Batches) Restore(s BatchState) error {
	was := b.state
	b.state = s
	b.shuffle()
	if s.Index < 0 || s.Index > len(b.order) {
		n := len(b.order)
		b.state = was
		b.shuffle()
		return fmt.Errorf("data position: window %d of the %d in epoch %d: it is of another text, seq_len or seed", s.Index, n, s.Epoch)
	}
	return nil
}

// Windows deals out a validation text in order, so that each token but the first is a target exactly once.
type Windows struct {
	tokens                 []int32
	seqLen, batch, context int
	next                   int // the first token that has not been a target
}

// NewWindows deals batch windows of seqLen tokens at a time. Each window but the first begins with context tokens that the one before it
// ended with: their targets are Ignored there, and every other target is predicted from at least context tokens before it, which is closer
// to what a model is worth on long text the larger context is, at seqLen/(seqLen-context) times the work. It is an error if there is no token
// to predict.
func NewWindows(tokens []int32, seqLen, batch, context int) (*Windows, error) {
	checkSizes(seqLen, batch)
	if context < 0 || context >= seqLen {
		panic("data: context outside of 0 to sequence length - 1")
	}
	if len(tokens) < 2 {
		return nil, fmt.Errorf("the validation text has %d tokens, but at least 2 are needed: give more text", len(tokens))
	}
	return &Windows{tokens: tokens, seqLen: seqLen, batch: batch, context: context, next: 1}, nil
}

// Next fills tokens and their targets, each (B, T), and returns how many targets there are, 0 at the end. Past the end of the text
// tokens are 0 and targets Ignored.
func (w *Windows) Next(tokens, targets []int32) int {
	if n := w.batch * w.seqLen; len(tokens) != n || len(targets) != n {
		panic("data: tokens or targets are not of batch times sequence length")
	}
	count := 0
	for row := 0; row < len(tokens); row += w.seqLen {
		count += w.window(tokens[row:row+w.seqLen], targets[row:row+w.seqLen])
	}
	return count
}

func (w *Windows) window(tokens, targets []int32) int {
	clear(tokens)
	for t := range targets {
		targets[t] = Ignored
	}
	if w.next == len(w.tokens) {
		return 0
	}
	at := max(0, w.next-1-w.context)
	copy(tokens, w.tokens[at:len(w.tokens)-1])
	first := w.next - 1 - at
	n := copy(targets[first:], w.tokens[w.next:])
	w.next += n
	return n
}
