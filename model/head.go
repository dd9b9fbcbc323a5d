package model

import (
	"errors"
	"slices"

	"github.com/vktrain/vktrain/graph"
)

// LossOptions say how a forward pass ends.
type LossOptions struct {
	ZLoss float32 // coefficient of the squared log-sum-exp of the logits; 0: off
	// ChunkRows is how many rows (tokens) of logits exist at a time, a multiple of RowsUnit. 0: all of them while they are small, else an eighth.
	ChunkRows int
	// Logits asks for f.Logits even where there are several chunks: they are then computed a second time, for whoever looks at them.
	Logits bool
	// Wrt are values between parameters and loss whose gradients LossAndGrads gives too, after the parameters'.
	Wrt []*graph.Value
}

// RowsUnit is what numbers of rows in a chunk are multiples of: parts of inputs and activations then start where every device can bind.
const RowsUnit = 128

// smallLogits is the size in bytes up to which a chunk of logits is not made smaller.
const smallLogits = 32 << 20

// chunkRows is LossOptions.ChunkRows' default. There are at most eight chunks, since each goes once over the head's weights and their gradient, which
// is nothing beside the products of a chunk of hundreds of rows, but not beside those of a few.
func chunkRows(rows, vocab int) int {
	chunk := max(rows/8, smallLogits/(4*vocab)/RowsUnit*RowsUnit, RowsUnit)
	count := (rows + chunk - 1) / chunk
	return (rows/count + RowsUnit - 1) / RowsUnit * RowsUnit // chunks alike
}

// head is the end of a forward pass being recorded: from Forward.Final to the loss.
type head struct {
	c                 Config
	b                 *graph.Builder
	f                 *Forward
	targets, invCount *graph.Value
	o                 LossOptions
	chunk             int
}

func (c Config) newHead(b *graph.Builder, f *Forward, targets, invCount *graph.Value, o LossOptions) *head {
	h := &head{c: c, b: b, f: f, targets: targets, invCount: invCount, o: o, chunk: o.ChunkRows}
	if h.chunk == 0 {
		h.chunk = chunkRows(h.rows(), c.VocabSize)
	}
	if o.Logits && !h.whole() {
		f.Logits = c.Head(b, f, f.Final)
	}
	return h
}

func (h *head) rows() int { return h.targets.Elems() }

func (h *head) whole() bool { return h.chunk >= h.rows() }

// Loss records the head and the loss (1) of a Trunk: the sum of the cross-entropies of targets (B, T) times invCount (1). Logits exist in
// chunks of rows, one at a time. Where there is one chunk alone, it is f.Logits.
func (c Config) Loss(b *graph.Builder, f *Forward, targets, invCount *graph.Value, o LossOptions) *graph.Value {
	return b.Sum(c.Losses(b, f, targets, o), invCount)
}

// Losses records the head and the cross-entropy of each target (B, T), 0 where it is ignored: B*T elements, f32. Logits exist as in Loss.
func (c Config) Losses(b *graph.Builder, f *Forward, targets *graph.Value, o LossOptions) *graph.Value {
	h := c.newHead(b, f, targets, nil, o)
	if h.whole() {
		return h.wholeLosses()
	}
	losses := b.Temp("losses", graph.F32, h.rows())
	for _, part := range h.chunks(losses) {
		h.crossEntropy(part)
	}
	return losses
}

// LossAndGrads is Loss, and the gradients of all parameters in the order of Params, added into into's accumulators where it has them. seed (1) is the
// gradient of the loss itself: 1, or a loss scale. The gradient of a loss does not depend on its value, so that a chunk's gradients
// come right after its logits, and no logits are kept or computed twice.
func (c Config) LossAndGrads(b *graph.Builder, f *Forward, targets, invCount, seed *graph.Value, into map[*graph.Value]*graph.Value, o LossOptions) (loss *graph.Value, grads []*graph.Value, err error) {
	h := c.newHead(b, f, targets, invCount, o)
	var params []*graph.Value
	for _, p := range c.Params() {
		params = append(params, f.Params[p.Name])
	}
	params = append(params, o.Wrt...)
	if h.whole() {
		loss = b.Sum(h.wholeLosses(), invCount)
		defer b.Scope("backward")()
		grads, err = b.Grad(loss, seed, params, into)
		return loss, grads, err
	}
	return h.chunkedGrads(params, seed, into)
}

func (h *head) wholeLosses() *graph.Value {
	h.f.Logits = h.c.Head(h.b, h.f, h.f.Final)
	losses, _ := h.b.CrossEntropy(h.f.Logits, h.targets, nil, graph.CrossEntropyAttr{ZLoss: h.o.ZLoss})
	return losses
}

// headChunk is some rows: views of the head's input, the targets and the losses.
type headChunk struct {
	first              int
	x, targets, losses *graph.Value
}

func (h *head) chunks(losses *graph.Value) []headChunk {
	var list []headChunk
	for first := 0; first < h.rows(); first += h.chunk {
		n := min(h.chunk, h.rows()-first)
		list = append(list, headChunk{
			first: first, x: h.rowsOf(h.f.Final, first, n),
			targets: h.b.View(h.targets, first, n), losses: h.b.View(losses, first, n),
		})
	}
	return list
}

// rowsOf is n rows of an activation (..., D).
func (h *head) rowsOf(v *graph.Value, first, n int) *graph.Value {
	d := v.Shape().Last()
	return h.b.View(v, first*d, n, d)
}

func (h *head) crossEntropy(part headChunk) {
	logits := h.c.Head(h.b, h.f, part.x)
	h.b.CrossEntropy(logits, part.targets, part.losses, graph.CrossEntropyAttr{ZLoss: h.o.ZLoss})
}

// chunkedGrads goes back from each chunk's losses to its rows of the head's input and to the head's weights, which all chunks add to, and then from the
// head's input through the trunk.
func (h *head) chunkedGrads(params []*graph.Value, seed *graph.Value, into map[*graph.Value]*graph.Value) (loss *graph.Value, grads []*graph.Value, err error) {
	b, weights := h.b, h.weights()
	losses := b.Temp("losses", graph.F32, h.rows())
	chunks := h.chunks(losses)
	scope := b.Scope("backward")
	dlosses := b.Broadcast(seed, h.invCount, h.chunk)
	dfinal := b.Fill(b.Temp("dfinal", h.f.Final.DType(), h.f.Final.Shape()...), 0)
	scope()
	sum := into[weights]
	for _, part := range chunks {
		h.crossEntropy(part)
		n := part.losses.Elems()
		to := map[*graph.Value]*graph.Value{part.x: h.rowsOf(dfinal, part.first, n)}
		if sum != nil {
			to[weights] = sum
		}
		scope := b.Scope("backward")
		g, err := b.Grad(part.losses, b.View(dlosses, 0, n), []*graph.Value{part.x, weights}, to)
		scope()
		if err != nil {
			return nil, nil, err
		}
		sum = g[1]
	}
	loss = b.Sum(losses, h.invCount)

	defer b.Scope("backward")()
	to := map[*graph.Value]*graph.Value{weights: sum}
	for v, acc := range into {
		to[v] = acc
	}
	wrt := slices.Clone(params)
	own := -1 // the head's weights, where the trunk does not have them too
	if !h.c.Tied {
		own = slices.Index(params, weights)
		wrt = slices.Delete(wrt, own, own+1)
	}
	grads, err = b.Grad(h.f.Final, dfinal, wrt, to)
	if err == nil && own >= 0 {
		grads = slices.Insert(grads, own, sum)
	}
	if err != nil {
		err = errors.Join(errors.New("model: the trunk's gradients"), err)
	}
	return loss, grads, err
}

// weights is the head's matrix.
func (h *head) weights() *graph.Value {
	if h.c.Tied {
		return h.f.Params[nameEmbedding]
	}
	return h.f.Params[nameHead]
}

// Head gives the logits (..., V) of rows (..., D) of Final.
func (c Config) Head(b *graph.Builder, f *Forward, rows *graph.Value) *graph.Value {
	c, _ = c.valid()
	h := &head{c: c, b: b, f: f}
	defer b.Scope("head")()
	logits := b.Linear(rows, b.Stored(h.weights(), f.storage), nil)
	if c.LogitSoftcap > 0 {
		logits = b.SoftCap(logits, float32(c.LogitSoftcap))
	}
	return logits
}
