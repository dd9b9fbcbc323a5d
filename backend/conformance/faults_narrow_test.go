package conformance

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/graph"
)

// noFaultIn are the faults that change nothing in a format, and why.
var noFaultIn = map[string]string{
	"sums in float16 f16":                              "a result in f16 is such a sum; sums that are rounded on their way are another fault",
	"operands of 11 bits, as tensor-float-32 has bf16": "they have 8",
	"operands of 11 bits, as tensor-float-32 has f16":  "they have 11",
	"results with the bits of bf16 bf16":               "they are",
	"a variance about the mean as it is rounded bf16":  "rows of 8 bits spread by 2^-8 of their mean at least, unless they are all the same; its rounding is 2^-24",
	"a variance about the mean as it is rounded f16":   "the same, of 11 bits",
	// The squares of float16 numbers, and the sums of rows of them, are float32 numbers.
	"an angle of squares that overflow or vanish f16": "none does", "norms of squares that overflow or vanish f16": "none does",
	"a mean of a sum that overflows f16": "none does", "a variance of a sum of squares that overflows f16": "none does",
	// The cases with masters in bf16 have a rounding of their own and no form in other formats: TestKitSeesFaults breaks them.
	"random bits of another tensor bf16": "the masters' own cases", "random bits of another tensor f16": "the masters' own cases",
	"random bits of another part bf16": "the masters' own cases", "random bits of another part f16": "the masters' own cases",
	"rounding to nearest where it is stochastic bf16": "the masters' own cases", "rounding to nearest where it is stochastic f16": "the masters' own cases",
}

// TestKitSeesFaultsIn16Bits breaks a device as TestKitSeesFaults does, and looks at the cases in bf16 alone and at those in f16 alone: a kernel for 16 bits
// is often another one than that for float32.
func TestKitSeesFaultsIn16Bits(t *testing.T) {
	for _, f := range append(faults(), narrowFaults()...) {
		for _, d := range []graph.DType{graph.BF16, graph.F16} {
			for _, op := range f.ops {
				cases := slices.DeleteFunc(opCases(op), func(c testCase) bool { return !strings.HasSuffix(c.Name, " "+d.String()) })
				if len(cases) == 0 {
					in, out := op.Narrow()
					require.True(t, op == graph.OpCast || !slices.Contains(append(slices.Clone(in), out...), true), "%s has no case in %s", op, d)
					continue // OpCast's cases have all formats, and no name for it
				}
				seen := ""
				b := reference.NewBackend()
				b.Hook = f.spoil
				for _, c := range cases {
					if seen = c.result(b, Options{Seed: 1}).Error; seen != "" {
						break
					}
				}
				if why := noFaultIn[f.name+" "+d.String()]; why == "" {
					require.NotEmpty(t, seen, "no case of %s in %s sees: %s", op, d, f.name)
				}
			}
		}
	}
}

// narrowFaults are ways to be wrong that only kernels for 16 bits have.
func narrowFaults() []fault {
	words := []graph.Op{graph.OpMatMul, graph.OpRMSNorm, graph.OpRMSNormGrad, graph.OpLayerNorm, graph.OpAttention, graph.OpAttentionGrad, graph.OpQKNormRoPE,
		graph.OpSwiGLU, graph.OpSwiGLUGrad, graph.OpAdd, graph.OpGELU, graph.OpSoftmax, graph.OpCrossEntropyGrad}
	return []fault{
		{name: "truncated instead of rounded", ops: words, spoil: eachNarrow(truncate)},
		{name: "results with the bits of bf16", ops: words, spoil: eachNarrow(func(x float64, _ graph.DType) float64 { return reference.ToBF16(x) })},
		{name: "the halves of a word are swapped", ops: append(words, graph.OpEmbedding), spoil: after(func(n *graph.Node, _, out [][]float64) {
			for k, o := range out {
				if n.Out[k] != nil && n.Out[k].DType().Size() == 2 {
					for i := 0; i+1 < len(o); i += 2 {
						o[i], o[i+1] = o[i+1], o[i]
					}
				}
			}
		})},
		{name: "the second half of the last word is left out", ops: append(words, graph.OpEmbedding), spoil: func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
			last := make([]float64, len(out))
			for k, o := range out {
				if o != nil {
					last[k] = o[len(o)-1]
				}
			}
			run(n, in, out)
			for k, o := range out {
				if o != nil && n.Out[k].DType().Size() == 2 {
					o[len(o)-1] = last[k]
				}
			}
		}},
		{name: "sums that are rounded at each addition", ops: []graph.Op{graph.OpMatMul}, spoil: sumsIn16Bits},
		{name: "the addend is added after rounding", ops: []graph.Op{graph.OpMatMul, graph.OpRMSNorm, graph.OpRMSNormGrad}, spoil: addedLate},
	}
}

// eachNarrow changes what is written in 16 bits.
func eachNarrow(change func(x float64, d graph.DType) float64) hook {
	return after(func(n *graph.Node, _, out [][]float64) {
		for k, o := range out {
			if n.Out[k] != nil && n.Out[k].DType().Size() == 2 {
				for i := range o {
					o[i] = change(o[i], n.Out[k].DType())
				}
			}
		}
	})
}

// truncate rounds towards zero.
func truncate(x float64, d graph.DType) float64 {
	r := reference.Round(x, d)
	if math.Abs(r) <= math.Abs(x) || math.IsInf(r, 0) {
		return r
	}
	bits := 8
	if d == graph.F16 {
		bits = 11
	}
	_, e := math.Frexp(x)
	return math.Copysign(math.Abs(r)-math.Ldexp(1, e-bits), x)
}

// sumsIn16Bits is a product whose sums have the format of its operands.
func sumsIn16Bits(n *graph.Node, in, out [][]float64, run reference.Kernel) {
	d := n.In[0].DType()
	if d == graph.F32 {
		d = n.In[1].DType()
	}
	at := graph.AttrOf[graph.MatMulAttr](n)
	_, rows, cols, inner := graph.MatMulDims(n)
	rowA, stepA, rowB, stepB := inner, 1, 1, cols
	if at.TransA {
		rowA, stepA = 1, rows
	}
	if at.TransB {
		rowB, stepB = inner, 1
	}
	for k := range out[0] {
		z, i, j := k/(rows*cols), k/cols%rows, k%cols
		a, b := in[0][z*rows*inner:], in[1][z*inner*cols:]
		s := 0.0
		for l := range inner {
			s = reference.Round(s+a[i*rowA+l*stepA]*b[j*rowB+l*stepB], d)
		}
		if in[2] != nil {
			s = reference.Round(s+in[2][k], d)
		}
		out[0][k] = s
	}
}

// addedLate rounds a result before the addend, the last input, is added to it.
func addedLate(n *graph.Node, in, out [][]float64, run reference.Kernel) {
	addend := in[len(in)-1]
	if addend == nil || n.Out[0].DType().Size() != 2 {
		run(n, in, out)
		return
	}
	addend = slices.Clone(addend) // it may be the output
	in = slices.Clone(in)
	in[len(in)-1] = nil
	run(n, in, out)
	for i := range out[0] {
		out[0][i] = reference.Round(out[0][i], n.Out[0].DType()) + addend[i]
	}
}
