package model

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/vktrain/vktrain/graph"
)

// Forward holds the values of a forward pass that others may want: gradients, diagnostics, tests. B is the batch, T the sequence length.
type Forward struct {
	Params map[string]*graph.Value // by name; all of them are variables of the program
	Hidden []*graph.Value          // N+1 of (B, T, D): the residual stream after the embedding (and its norm) and after each block
	Final  *graph.Value            // (B, T, D): the head's input
	QRope  []*graph.Value          // of each block (B, T, H*h): queries after QK-Norm and RoPE
	KRope  []*graph.Value          // of each block (B, T, K*h): keys
	LSE    []*graph.Value          // of each block (B, H, T): the log-sum-exp of attention's logits
	Logits *graph.Value            // (B, T, V); nil from Trunk, and where Loss takes the rows in chunks
	Blocks []Block                 // those that are whole

	storage graph.DType     // of activations
	blocks  [][]*graph.Node // of each block
}

// Block holds what is between the values of a block that gradients need.
type Block struct {
	Attention, MLP Module
	V, Scale       *graph.Value // of attention: values (B, T, K*h), and the learnable scale (1) or nil; queries and keys are Forward.QRope and KRope
	Attr           graph.AttentionAttr
}

// Module holds the values of attention or the MLP.
type Module struct {
	Inner  *graph.Value // what the last projection multiplies: (B, T, H*h) of attention, (B, T, F) of the MLP
	Output *graph.Value // (B, T, D): what that gives; nil where it is added to the residual stream at once, for want of an output norm
	Sum    *graph.Value // (B, T, D): the residual stream after the addition, and before a norm of that
	Stream *graph.Value // (B, T, D): the residual stream after the module

	project, normalize func() *graph.Value
}

// OutputAlone is Output, and where that is nil a product that is recorded now, for those who look.
func (m Module) OutputAlone() *graph.Value {
	if m.Output != nil {
		return m.Output
	}
	return m.project()
}

// NormedAlone records the output norm's result, which is otherwise added to the residual stream at once. It is nil where there is none.
func (m Module) NormedAlone() *graph.Value {
	if m.normalize == nil {
		return nil
	}
	return m.normalize()
}

// net is a forward pass being recorded.
type net struct {
	c   Config
	pos Positions
	b   *graph.Builder
	f   *Forward

	now     Block // that is being recorded
	observe func(f *Forward, i int)
	seen    int    // blocks that were observed
	aside   [2]int // the first node that observe recorded last, and the one after
}

// Forward records the parameters as variables, in the order of Params, and the pass from tokens (B, T) i32 to logits. Activations are in the
// storage format, and so are the matrices that they are multiplied by, each cast once. The config must be valid.
func (c Config) Forward(b *graph.Builder, tokens *graph.Value, storage graph.DType) *Forward {
	f := c.Trunk(b, tokens, storage, graph.F32)
	f.Logits = c.Head(b, f, f.Final)
	return f
}

// Trunk is Forward without the head, with the variables of matrices in a format of their own.
func (c Config) Trunk(b *graph.Builder, tokens *graph.Value, storage, masters graph.DType) *Forward {
	return c.ObservedTrunk(b, tokens, storage, masters, nil)
}

// ObservedTrunk is Trunk, and calls observe for each block when it is whole, to record nodes that look at its values. They stand where no two nodes of the trunk
// are parted that a device may run as one, so that all else has the same bits with them.
func (c Config) ObservedTrunk(b *graph.Builder, tokens *graph.Value, storage, masters graph.DType, observe func(f *Forward, i int)) *Forward {
	n := &net{b: b, f: &Forward{Params: map[string]*graph.Value{}, storage: storage}, observe: observe}
	n.c, n.pos = c.valid()
	for _, p := range n.c.Params() {
		n.f.Params[p.Name] = p.Var(b, masters)
	}
	x := b.EmbeddingAs(n.param(nameEmbedding), tokens, storage)
	if n.c.EmbedNorm {
		x = n.norm("embed_norm", x, nameEmbedNorm, nil)
	}
	n.f.Hidden = append(n.f.Hidden, x)
	for i := range n.c.NLayers {
		n.castMatrices(i)
		from := len(b.Nodes())
		x = n.block(i, x)
		n.f.blocks = append(n.f.blocks, n.nodesFrom(from))
		n.f.Hidden, n.f.Blocks, n.now = append(n.f.Hidden, x), append(n.f.Blocks, n.now), Block{}
	}
	if n.c.FinalNorm {
		x = n.norm("final_norm", x, nameFinalNorm, nil)
	}
	n.f.Final = x
	n.look()
	return n.f
}

// look lets the observer see the block that is whole and that it has not seen.
func (n *net) look() {
	if n.observe == nil || n.seen == len(n.f.Blocks) {
		return
	}
	n.aside[0] = len(n.b.Nodes())
	n.observe(n.f, n.seen)
	n.aside[1] = len(n.b.Nodes())
	n.seen++
}

// nodesFrom are the nodes from a number on, but for the observer's.
func (n *net) nodesFrom(from int) []*graph.Node {
	nodes := n.b.Nodes()
	if n.aside[0] < from {
		return nodes[from:]
	}
	return slices.Concat(nodes[from:n.aside[0]], nodes[n.aside[1]:])
}

func (n *net) param(name string) *graph.Value {
	v := n.f.Params[name]
	if v == nil {
		panic(fmt.Sprintf("model: no parameter %q", name))
	}
	return v
}

// matrix is a parameter as products read it.
func (n *net) matrix(name string) *graph.Value { return n.b.Stored(n.param(name), n.f.storage) }

// castMatrices casts those of a block together: nodes in a row that do not need each other share a barrier.
func (n *net) castMatrices(i int) {
	for _, p := range n.c.Params() {
		if p.Role == RoleMatrix && strings.HasPrefix(p.Name, layerName(i, "")) {
			n.matrix(p.Name)
		}
	}
}

// gain is a norm's parameter, nil where gains are frozen.
func (n *net) gain(name string) *graph.Value {
	if n.c.Gain == GainFrozen {
		return nil
	}
	return n.param(name)
}

// norm is addend + Norm(x), of the config's kind.
func (n *net) norm(scope string, x *graph.Value, gain string, addend *graph.Value) *graph.Value {
	defer n.b.Scope(scope)()
	if n.c.Norm == NormLayer {
		return n.b.LayerNorm(x, n.gain(gain), addend, float32(n.c.NormEps))
	}
	return n.b.RMSNorm(x, n.gain(gain), addend, float32(n.c.NormEps))
}

// linear is addend + x Wᵀ with the projection name of the module whose parameters' names begin with prefix.
func (n *net) linear(prefix, name string, x, addend *graph.Value) *graph.Value {
	defer n.b.Scope(name)()
	return n.b.Linear(x, n.matrix(prefix+name+".weight"), addend)
}

func (n *net) block(i int, x *graph.Value) *graph.Value {
	defer n.b.Scope(fmt.Sprintf("layers.%d", i))()
	attn, mlp := modules(i, n.pos)
	x = n.residual("self_attn", attn, &n.now.Attention, x, func(h, addend *graph.Value) *graph.Value { return n.attention(layerName(i, "self_attn."), h, addend) })
	return n.residual("mlp", mlp, &n.now.MLP, x, func(h, addend *graph.Value) *graph.Value { return n.mlp(layerName(i, "mlp."), h, addend) })
}

// residual adds a module to the residual stream with the norms of the placement. The addition is fused with the module's last projection, or with
// the output norm where there is one.
func (n *net) residual(scope string, m module, values *Module, x *graph.Value, f func(h, addend *graph.Value) *graph.Value) *graph.Value {
	defer n.b.Scope(scope)()
	h, y := x, x
	if n.pos.Input {
		h = n.norm("input_norm", x, m.input, nil)
	}
	if n.pos.Output {
		output := f(h, nil)
		values.Output, values.normalize = output, func() *graph.Value { return n.norm("output_norm", output, m.output, nil) }
		y = n.norm("output_norm", output, m.output, x)
	} else {
		y = f(h, x)
	}
	values.Sum = y
	if n.pos.Sum {
		y = n.norm("sum_norm", y, m.sum, nil)
	}
	values.Stream = y
	return y
}

// attention is addend + Wo attention(q, k, v), with q and k normalised and rotated.
func (n *net) attention(prefix string, x, addend *graph.Value) *graph.Value {
	c := n.c
	// The three projections stand together, and so do the two rotations: nodes in a row that do not need each other share a barrier.
	q, k, v := n.linear(prefix, "q_proj", x, nil), n.linear(prefix, "k_proj", x, nil), n.linear(prefix, "v_proj", x, nil)
	n.look()
	q, k = n.rotate(prefix, "q", c.NHeads, q), n.rotate(prefix, "k", c.NKVHeads, k)
	attr := graph.AttentionAttr{Heads: c.NHeads, KVHeads: c.NKVHeads, HeadDim: c.HeadDim, SoftCap: float32(c.AttnSoftcap)}
	var scale *graph.Value
	switch {
	case c.QKNorm == QKNormL2 && c.QKScale == GainFrozen:
		attr.Scale = c.initialScale()
	case c.QKNorm == QKNormL2:
		scale = n.param(prefix + "qk_scale")
	default:
		attr.Scale = 1 / math.Sqrt(float64(c.HeadDim))
	}
	o, lse := n.b.Attention(q, k, v, scale, attr)
	n.now.V, n.now.Scale, n.now.Attr = v, scale, attr
	n.now.Attention.Inner, n.now.Attention.project = o, func() *graph.Value { return n.linear(prefix, "o_proj", o, nil) }
	n.f.QRope, n.f.KRope, n.f.LSE = append(n.f.QRope, q), append(n.f.KRope, k), append(n.f.LSE, lse)
	return n.linear(prefix, "o_proj", o, addend)
}

// rotate is QK-Norm and RoPE of the queries ("q") or the keys ("k").
func (n *net) rotate(prefix, which string, heads int, x *graph.Value) *graph.Value {
	defer n.b.Scope(which + "_norm")()
	c := n.c
	gainName := prefix + which + "_norm.weight"
	attr := graph.QKNormRoPEAttr{Heads: heads, HeadDim: c.HeadDim, Theta: float32(c.RoPETheta)}
	var gain *graph.Value
	switch c.QKNorm {
	case QKNormRMS:
		attr.Norm, attr.Eps, gain = graph.QKRMS, float32(c.NormEps), n.gain(gainName)
	case QKNormLayerNorm:
		attr.Norm, attr.Eps, gain = graph.QKLayerNorm, float32(c.NormEps), n.gain(gainName)
	case QKNormL2:
		attr.Norm, attr.Eps = graph.QKL2, float32(c.L2Eps)
	case QKNormRMSFull:
		x = n.b.RMSNorm(x, n.gain(gainName), nil, float32(c.NormEps))
	}
	return n.b.QKNormRoPE(x, gain, attr)
}

// mlp is addend + Wd f(x).
func (n *net) mlp(prefix string, x, addend *graph.Value) *graph.Value {
	var h *graph.Value
	switch n.c.MLP {
	case MLPSwiGLU:
		gate := n.linear(prefix, "gate_proj", x, nil)
		h = n.b.SwiGLU(gate, n.linear(prefix, "up_proj", x, nil))
	case MLPGELU:
		h = n.b.GELU(n.linear(prefix, "up_proj", x, nil))
	case MLPReLU:
		h = n.b.ReLU(n.linear(prefix, "up_proj", x, nil))
	}
	n.now.MLP.Inner, n.now.MLP.project = h, func() *graph.Value { return n.linear(prefix, "down_proj", h, nil) }
	return n.linear(prefix, "down_proj", h, addend)
}
