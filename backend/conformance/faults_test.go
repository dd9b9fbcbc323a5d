package conformance

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/graph"
)

// hook is what a broken device does in place of a node.
type hook func(n *graph.Node, in, out [][]float64, run reference.Kernel)

// fault is a way to be wrong that the kit must see.
type fault struct {
	name  string
	ops   []graph.Op // that are broken; nil: all
	spoil hook
	only  []string // groups that must see it; nil: those of ops
}

// TestKitSeesFaults breaks a device that conforms, in one way at a time. A fault that no case sees is a case that is missing.
func TestKitSeesFaults(t *testing.T) {
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			b := reference.NewBackend()
			broken := map[graph.Op]bool{}
			for _, op := range f.ops {
				broken[op] = true
			}
			b.Hook = func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
				if f.ops == nil || broken[n.Op] {
					f.spoil(n, in, out, run)
				} else {
					run(n, in, out)
				}
			}
			groups := f.only
			if groups == nil {
				for _, op := range f.ops {
					groups = append(groups, op.String())
				}
			}
			seenIn(t, b, groups)
		})
	}
}

// seenIn requires that each of the groups has a failure, and logs the first.
func seenIn(t *testing.T, b backend.Backend, groups []string) {
	t.Helper()
	for _, g := range groups {
		cases, err := selectCases(Options{Only: []string{g}})
		require.NoError(t, err)
		seen := slices.ContainsFunc(cases, func(c testCase) bool {
			r := c.result(b, Options{Seed: 1})
			first, _, _ := strings.Cut(r.Error, "\n")
			if r.Error != "" {
				t.Logf("seen by %s, %s: %s", g, r.Name, first)
			}
			return r.Error != ""
		})
		require.True(t, seen, "no case of %s sees it", g)
	}
}

// with runs the node with other attributes.
func with[T any](change func(at *T)) hook {
	return func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
		m := *n
		at := graph.AttrOf[T](n)
		change(&at)
		m.Attr = at
		run(&m, in, out)
	}
}

// without runs the node without an operand.
func without(operand int) hook {
	return func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
		in = slices.Clone(in)
		in[operand] = nil
		run(n, in, out)
	}
}

// after changes the outputs.
func after(change func(n *graph.Node, in, out [][]float64)) hook {
	return func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
		run(n, in, out)
		change(n, in, out)
	}
}

// each changes every element of the outputs.
func each(change func(x float64) float64) hook {
	return after(func(_ *graph.Node, _, out [][]float64) {
		for _, o := range out {
			for i := range o {
				o[i] = change(o[i])
			}
		}
	})
}

func faults() []fault {
	list := storageFaults()
	list = append(list, numberFaults()...)
	list = append(list, formulaFaults()...)
	list = append(list, diagnosticFaults()...)
	return append(list, attentionFaults()...)
}

// neighbour is another number of a format, close to x; 0 and what is not finite stay.
func neighbour(x float64, d graph.DType) float64 {
	part := 0x1p-23
	switch d {
	case graph.BF16:
		part = 0x1p-7
	case graph.F16:
		part = 0x1p-10
	}
	return reference.Round(x*(1+part), d)
}

// everyOutput are operators of all kinds, for faults that any may have.
var everyOutput = []graph.Op{graph.OpMatMul, graph.OpRMSNorm, graph.OpAttentionGrad, graph.OpSwiGLUGrad, graph.OpEmbedding, graph.OpCrossEntropyGrad, graph.OpAdamW, graph.OpCast}

func storageFaults() []fault {
	r := rand.New(rand.NewPCG(1, 1))
	var pending func()
	nodes := 0
	return []fault{
		{name: "a tail that is not written", ops: everyOutput, spoil: func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
			var tails [][]float64
			for _, o := range out {
				tails = append(tails, slices.Clone(o[len(o)/4*4:]))
			}
			run(n, in, out)
			for i, o := range out {
				copy(o[len(o)/4*4:], tails[i])
			}
		}},
		{name: "outputs that keep what they were", ops: everyOutput, spoil: func(*graph.Node, [][]float64, [][]float64, reference.Kernel) {}},
		{name: "a word behind an output is written", ops: everyOutput[:6], spoil: after(func(n *graph.Node, _, out [][]float64) {
			at := len(out[0])
			if n.Out[0].DType().Size() == 2 {
				at += at % 2 // what fills the last word is nobody's
			}
			out[0][:at+1][at] = 0
		})},
		{name: "a word behind an input is read", ops: []graph.Op{graph.OpMatMul, graph.OpSum, graph.OpSoftmax}, spoil: after(func(_ *graph.Node, in, out [][]float64) {
			out[0][len(out[0])-1] += 0 * in[0][:len(in[0])+1][len(in[0])]
		})},
		{name: "an input is changed", ops: []graph.Op{graph.OpMatMul, graph.OpAdd, graph.OpRMSNormGrad}, spoil: after(func(_ *graph.Node, in, _ [][]float64) {
			in[0][0]++
		})},
		{name: "bits that differ from run to run", ops: everyOutput[:6], spoil: after(func(n *graph.Node, _, out [][]float64) {
			for i, x := range out[0] {
				if r.IntN(4) == 0 {
					out[0][i] = neighbour(x, n.Out[0].DType())
				}
			}
		})},
		{name: "a missing barrier", only: []string{"hazards", "block", "step"}, spoil: func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
			nodes++
			deferred := pending
			if pending = nil; nodes%9 == 0 {
				pending = func() { run(n, in, out) }
			} else {
				run(n, in, out)
			}
			if deferred != nil {
				deferred()
			}
		}},
	}
}

func numberFaults() []fault {
	unary := []graph.Op{graph.OpReLU, graph.OpGELU, graph.OpSoftmax, graph.OpSoftCap, graph.OpMatMul, graph.OpRMSNorm}
	return []fault{
		{name: "NaN becomes 0", ops: unary, spoil: each(func(x float64) float64 {
			if math.IsNaN(x) {
				return 0
			}
			return x
		})},
		{name: "infinities are clamped", ops: []graph.Op{graph.OpAdd, graph.OpMatMul, graph.OpCast, graph.OpSum}, spoil: each(func(x float64) float64 {
			return math.Max(-65504, math.Min(65504, x))
		})},
		{name: "sums in float16", ops: []graph.Op{graph.OpMatMul, graph.OpSumRows, graph.OpSumSquares, graph.OpRMSNorm, graph.OpEmbeddingGrad}, spoil: each(reference.ToF16)},
		{name: "operands of 11 bits, as tensor-float-32 has", ops: []graph.Op{graph.OpMatMul}, spoil: func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
			in = slices.Clone(in)
			for i, x := range in[:2] {
				in[i] = make([]float64, len(x))
				for j := range x {
					f, e := math.Frexp(x[j])
					in[i][j] = math.Ldexp(math.RoundToEven(f*0x1p11), e-11)
				}
			}
			run(n, in, out)
		}},
		{name: "a function with 12 bits", ops: []graph.Op{graph.OpGELU, graph.OpSoftmax, graph.OpSwiGLU, graph.OpSoftCap, graph.OpCrossEntropy, graph.OpAttention}, spoil: each(func(x float64) float64 {
			return x * (1 + 0x1p-12)
		})},
		{name: "truncation instead of rounding", ops: []graph.Op{graph.OpCast}, spoil: func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
			if run(n, in, out); n.Out[0].DType() != graph.BF16 {
				return
			}
			for i, x := range in[0] {
				out[0][i] = float64(math.Float32frombits(math.Float32bits(float32(x)) &^ 0xFFFF))
			}
		}},
		{name: "exponentials that overflow", ops: []graph.Op{graph.OpSoftmax, graph.OpCrossEntropy}, spoil: after(func(_ *graph.Node, in, out [][]float64) {
			for _, x := range in[0] {
				if x > 88.7 {
					out[0][0] = math.NaN()
				}
			}
		})},
	}
}

func formulaFaults() []fault {
	norms := []graph.Op{graph.OpRMSNorm, graph.OpRMSNormGrad, graph.OpLayerNorm, graph.OpLayerNormGrad}
	qk := []graph.Op{graph.OpQKNormRoPE, graph.OpQKNormRoPEGrad}
	return []fault{
		{name: "eps of 1e-5", ops: norms, spoil: with(func(at *graph.NormAttr) { at.Eps *= 10 })},
		{name: "eps of 1e-5 in QK-Norm", ops: qk, spoil: with(func(at *graph.QKNormRoPEAttr) { at.Eps *= 10 })},
		{name: "RoPE's base 1000", ops: qk, spoil: with(func(at *graph.QKNormRoPEAttr) { at.Theta = 1000 })},
		{name: "no rotation back", ops: qk[1:], spoil: with(func(at *graph.QKNormRoPEAttr) { at.Theta = float32(math.Inf(1)) })},
		{name: "a norm without its gain", ops: []graph.Op{graph.OpRMSNorm, graph.OpLayerNorm}, spoil: without(1)},
		{name: "an addend that is left out", ops: []graph.Op{graph.OpMatMul, graph.OpRMSNorm, graph.OpSumRows, graph.OpRMSNormGrad, graph.OpEmbeddingGrad},
			spoil: func(n *graph.Node, in, out [][]float64, run reference.Kernel) { without(len(in)-1)(n, in, out, run) }},
		{name: "a transpose that is swapped", ops: []graph.Op{graph.OpMatMul}, spoil: func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
			if _, rows, _, inner := graph.MatMulDims(n); rows == inner {
				with(func(at *graph.MatMulAttr) { at.TransA = !at.TransA })(n, in, out, run)
			} else {
				run(n, in, out)
			}
		}},
		{name: "the last of the inner dimension is left out", ops: []graph.Op{graph.OpMatMul}, spoil: func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
			_, rows, _, inner := graph.MatMulDims(n)
			a := slices.Clone(in[0])
			for i := range a {
				if k := i % inner; graph.AttrOf[graph.MatMulAttr](n).TransA && i/rows%inner == inner-1 || !graph.AttrOf[graph.MatMulAttr](n).TransA && k == inner-1 {
					a[i] = 0
				}
			}
			run(n, append([][]float64{a}, in[1:]...), out)
		}},
		{name: "a sum without its last element", ops: []graph.Op{graph.OpSum, graph.OpSumSquares, graph.OpDots, graph.OpSummary}, spoil: func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
			x := slices.Clone(in[0])
			x[len(x)-1] = 0
			run(n, append([][]float64{x}, in[1:]...), out)
		}},
		{name: "a token's gradient is its last row", ops: []graph.Op{graph.OpEmbeddingGrad}, spoil: after(func(n *graph.Node, in, out [][]float64) {
			d := n.Out[0].Shape()[1]
			for r, tok := range in[0] {
				if t := int(tok); t >= 0 && t < n.Out[0].Shape()[0] {
					copy(out[0][t*d:(t+1)*d], in[1][r*d:])
				}
			}
		})},
		{name: "tokens out of range are clamped", ops: []graph.Op{graph.OpEmbedding, graph.OpCrossEntropy, graph.OpCrossEntropyGrad}, spoil: func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
			limit := float64(n.In[0].Shape().Last())
			if n.Op == graph.OpEmbedding {
				limit = float64(n.In[0].Shape()[0])
			}
			ids := slices.Clone(in[1])
			for i := range ids {
				ids[i] = math.Max(0, math.Min(limit-1, ids[i]))
			}
			run(n, append([][]float64{in[0], ids}, in[2:]...), out)
		}},
		{name: "no z-loss", ops: []graph.Op{graph.OpCrossEntropy, graph.OpCrossEntropyGrad}, spoil: with(func(at *graph.CrossEntropyAttr) { at.ZLoss = 0 })},
		{name: "decay where there is none", ops: []graph.Op{graph.OpAdamW}, spoil: with(func(at *graph.AdamWAttr) { at.Decay = 1 })},
		{name: "clipping that is left out", ops: []graph.Op{graph.OpAdamW}, spoil: func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
			run(n, append(slices.Clone(in[:5]), []float64{1}, in[6]), out)
		}},
		{name: "eps inside AdamW's root", ops: []graph.Op{graph.OpAdamW}, spoil: func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
			h := slices.Clone(in[4])
			eps := h[graph.HyperEps]
			h[graph.HyperEps] = math.Sqrt(eps)
			run(n, append(slices.Clone(in[:4]), h, in[5], in[6]), out)
		}},
		{name: "random bits of another tensor", ops: []graph.Op{graph.OpAdamW}, spoil: with(func(at *graph.AdamWAttr) { at.Tensor++ })},
		{name: "random bits of another part", ops: []graph.Op{graph.OpAdamW}, spoil: with(func(at *graph.AdamWAttr) { at.First++ })},
		{name: "rounding to nearest where it is stochastic", ops: []graph.Op{graph.OpAdamW}, spoil: func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
			run(n, append(slices.Clone(in[:6]), nil), out)
		}},
		{name: "never clipped", ops: []graph.Op{graph.OpClipNorm}, spoil: with(func(at *graph.ClipNormAttr) { at.MaxNorm = 0 })},
		{name: "relu's gradient of 1 at 0", ops: []graph.Op{graph.OpReLUGrad}, spoil: after(func(_ *graph.Node, in, out [][]float64) {
			for i, x := range in[1] {
				if x == 0 {
					out[0][i] = in[0][i]
				}
			}
		})},
	}
}

// diagnosticFaults are mistakes that measurements of a step may have.
func diagnosticFaults() []fault {
	moments, summary, top := []graph.Op{graph.OpRowMoments}, []graph.Op{graph.OpSummary}, []graph.Op{graph.OpTopMagnitudes}
	angle, norms, adamW := []graph.Op{graph.OpRowAngle}, []graph.Op{graph.OpRowNorms}, []graph.Op{graph.OpAdamWStats}
	return []fault{
		{name: "a variance over n - 1", ops: moments, spoil: after(func(n *graph.Node, _, out [][]float64) {
			if d := float64(n.In[0].Shape().Last()); d > 1 {
				for i := range out[1] {
					out[1][i] *= d / (d - 1)
				}
			}
		})},
		{name: "a variance about the mean as it is rounded", ops: moments, spoil: after(func(_ *graph.Node, _, out [][]float64) {
			for i, mean := range out[0] {
				off := reference.ToF32(mean) - mean
				out[1][i] += off * off
			}
		})},
		{name: "a variance of squares less the mean's", ops: moments, spoil: after(func(_ *graph.Node, _, out [][]float64) {
			for i, mean := range out[0] {
				out[1][i] = reference.ToF32(reference.ToF32(out[1][i]+mean*mean) - reference.ToF32(mean*mean))
			}
		})},
		{name: "elements at the threshold are counted as over it", ops: summary, spoil: with(func(at *graph.SummaryAttr) {
			at.Threshold = math.Nextafter32(at.Threshold, 0)
		})},
		{name: "a smallest element that is never above 0", ops: summary, spoil: after(func(_ *graph.Node, _, out [][]float64) {
			out[0][graph.SummaryMin] = min(out[0][graph.SummaryMin], 0)
		})},
		{name: "a largest element that is never below 0", ops: summary, spoil: after(func(_ *graph.Node, _, out [][]float64) {
			out[0][graph.SummaryMax] = max(out[0][graph.SummaryMax], 0)
		})},
		{name: "the largest of magnitudes without their sign", ops: top, spoil: func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
			x := slices.Clone(in[0])
			for i := range x {
				x[i] = max(x[i], 0)
			}
			run(n, [][]float64{x}, out)
		}},
		{name: "equal magnitudes that count once", ops: top, spoil: func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
			x := slices.Clone(in[0])
			slices.SortFunc(x, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) })
			x = slices.CompactFunc(x, func(a, b float64) bool { return math.Abs(a) == math.Abs(b) })
			run(n, [][]float64{x}, out)
		}},
		{name: "a NaN that is no magnitude", ops: top, spoil: func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
			x := slices.DeleteFunc(slices.Clone(in[0]), func(v float64) bool { return math.IsNaN(v) })
			run(n, [][]float64{x}, out)
		}},
		{name: "an angle by the arccosine", ops: angle, spoil: after(func(n *graph.Node, in, out [][]float64) {
			d := n.In[0].Shape().Last()
			for r := range out[0] {
				x, y := in[0][r*d:(r+1)*d], in[1][r*d:(r+1)*d]
				cosine := reference.ToF32(inner(x, y) / math.Sqrt(inner(x, x)*inner(y, y)))
				out[0][r] = math.Acos(max(-1, min(1, cosine))) / math.Pi
			}
		})},
		{name: "an angle that is never obtuse", ops: angle, spoil: each(func(x float64) float64 { return min(x, 1-x) })},
		{name: "rows of zeros at no angle", ops: angle, spoil: after(func(n *graph.Node, in, out [][]float64) {
			d := n.In[0].Shape().Last()
			for r := range out[0] {
				if y := in[1][r*d : (r+1)*d]; inner(y, y) == 0 {
					out[0][r] = 0
				}
			}
		})},
		{name: "norms that are not divided", ops: norms, spoil: without(2)},
		{name: "norms with the means that are to be taken off", ops: norms, spoil: with(func(at *graph.RowNormsAttr) { at.Centered = false })},
		{name: "norms of squares that overflow or vanish", ops: norms, spoil: after(func(n *graph.Node, in, out [][]float64) {
			d := n.In[0].Shape().Last()
			for r := range out[0] {
				square := inner(in[0][r*d:(r+1)*d], in[0][r*d:(r+1)*d])
				if square > math.MaxFloat32 {
					out[0][r] = math.Inf(1)
				} else if square < 0x1p-126 {
					out[0][r] = 0
				}
			}
		})},
		{name: "an angle of squares that overflow or vanish", ops: angle, spoil: after(func(n *graph.Node, in, out [][]float64) {
			d := n.In[0].Shape().Last()
			for r := range out[0] {
				x := in[0][r*d : (r+1)*d]
				if square := inner(x, x); square > math.MaxFloat32 {
					out[0][r] = math.NaN()
				} else if square < 0x1p-126 {
					out[0][r] = 0.5
				}
			}
		})},
		{name: "a mean of a sum that overflows", ops: moments, spoil: after(func(n *graph.Node, _, out [][]float64) {
			d := float64(n.In[0].Shape().Last())
			for r, mean := range out[0] {
				if math.Abs(mean*d) > math.MaxFloat32 {
					out[0][r] = math.Copysign(math.Inf(1), mean)
				}
			}
		})},
		{name: "a variance of a sum of squares that overflows", ops: moments, spoil: after(func(n *graph.Node, _, out [][]float64) {
			d := float64(n.In[0].Shape().Last())
			for r, v := range out[1] {
				if v*d > math.MaxFloat32 {
					out[1][r] = math.Inf(1)
				}
			}
		})},
		{name: "norms without the second", ops: norms, spoil: without(1)},
		{name: "an update without decay", ops: adamW, spoil: with(func(at *graph.AdamWAttr) { at.Decay = 0 })},
		{name: "an update of the moments before the step", ops: adamW, spoil: func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
			h := slices.Clone(in[4])
			h[graph.HyperBeta1], h[graph.HyperBeta2] = 1, 1
			run(n, [][]float64{in[0], in[1], in[2], in[3], h, in[5]}, out)
		}},
		{name: "an update in a step that is left out", ops: adamW, spoil: after(func(_ *graph.Node, in, out [][]float64) {
			if in[5][0] == 0 {
				out[0][graph.DotsU] = 1
			}
		})},
	}
}

func attentionFaults() []fault {
	both := []graph.Op{graph.OpAttention, graph.OpAttentionGrad}
	return []fault{
		{name: "no soft cap", ops: both, spoil: with(func(at *graph.AttentionAttr) { at.SoftCap = 0 })},
		{name: "a scale that is 1e-4 off", ops: both, spoil: with(func(at *graph.AttentionAttr) { at.Scale *= 1.0001 })},
		{name: "a position that sees the next one", ops: both[:1], spoil: looseAttention(1, false)},
		{name: "no mask", ops: both[:1], spoil: looseAttention(1000, false)},
		{name: "a mask that multiplies by zero", ops: both[:1], spoil: looseAttention(0, true)},
		{name: "keys of another head", ops: both, spoil: func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
			at := graph.AttrOf[graph.AttentionAttr](n)
			keys := 1
			if n.Op == graph.OpAttentionGrad {
				keys = 2
			}
			in = slices.Clone(in)
			in[keys] = swapHeads(in[keys], at.KVHeads, at.HeadDim)
			run(n, in, out)
		}},
		{name: "the largest logit of all keys but the last", ops: both[:1], spoil: after(func(n *graph.Node, _, out [][]float64) {
			if top, T := out[2], n.In[0].Shape()[1]; top != nil {
				for i := len(top) - 1; i%T > 0; i-- {
					top[i] = math.Min(top[i], top[i-1])
				}
			}
		})},
		{name: "an entropy in bits", ops: both[:1], spoil: after(func(_ *graph.Node, _, out [][]float64) {
			for i := range out[3] {
				out[3][i] /= math.Ln2
			}
		})},
		{name: "a sum over the group that keeps one head", ops: both[1:], spoil: after(func(n *graph.Node, _, out [][]float64) {
			if at := graph.AttrOf[graph.AttentionAttr](n); at.KVHeads < at.Heads {
				for i := range out[1] {
					out[1][i] *= float64(at.KVHeads) / float64(at.Heads)
				}
			}
		})},
	}
}

func swapHeads(x []float64, heads, h int) []float64 {
	y := slices.Clone(x)
	if heads > 1 {
		for at := 0; at+2*h <= len(x); at += heads * h {
			copy(y[at:at+h], x[at+h:at+2*h])
			copy(y[at+h:at+2*h], x[at:at+h])
		}
	}
	return y
}

// looseAttention lets each position see some after it too, or reads the values of those it may not see with a weight of zero.
func looseAttention(ahead int, multiply bool) hook {
	return func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
		run(n, in, out)
		at := graph.AttrOf[graph.AttentionAttr](n)
		scale := at.Scale
		if in[3] != nil {
			scale = in[3][0]
		}
		seq, h, group := n.In[0].Shape()[1], at.HeadDim, at.Heads/at.KVHeads
		for row := range len(out[1]) {
			b, j, t := row/seq/at.Heads, row/seq%at.Heads, row%seq
			query := func(x []float64) []float64 { return x[((b*seq+t)*at.Heads+j)*h:][:h] }
			key := func(x []float64, u int) []float64 { return x[((b*seq+u)*at.KVHeads+j/group)*h:][:h] }
			for u := t + 1; u < seq; u++ {
				weight := 0.0
				if !multiply && u <= t+ahead {
					weight = math.Exp(scale*inner(query(in[0]), key(in[1], u)) - out[1][row])
				}
				if multiply || weight != 0 {
					for i, v := range key(in[2], u) {
						query(out[0])[i] += weight * v
					}
				}
			}
		}
	}
}
