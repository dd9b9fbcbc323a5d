package cpu

import (
	"math"

	"github.com/vktrain/vktrain/backend/cpu/simd"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/rng"
)

func sumSquares(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	x := in[0]
	chunk := (len(x) + graph.SumSquaresParts - 1) / graph.SumSquaresParts
	return c.overRows(graph.SumSquaresParts, chunk, func(_ *workerScratch, from, to int) {
		for i := from; i < to; i++ {
			part := x[min(len(x), i*chunk):min(len(x), (i+1)*chunk)]
			s := 0.0
			for len(part) > 0 { // sums of float32 over blocks, and of these in float64
				n := min(len(part), 4096)
				s += squares(part[:n], 0)
				part = part[n:]
			}
			out[0][i] = float32(s)
		}
	})
}

func clipNorm(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	limit := float64(graph.AttrOf[graph.ClipNormAttr](n).MaxNorm)
	return serial(func() {
		scale := 1.0
		if in[1] != nil {
			scale = float64(in[1][0])
		}
		norm := math.Sqrt(total(in[0])) / scale
		factor := 1 / scale
		switch {
		case math.IsNaN(norm) || norm > math.MaxFloat32:
			factor = 0
		case limit != 0 && norm+1e-6 > limit:
			factor = limit / (norm + 1e-6) / scale
		}
		out[0][0], out[1][0] = float32(norm), float32(factor)
	})
}

// adamW is one pass over the parameter, its moments and its gradient.
func adamW(c *compiler, n *graph.Node) kernel {
	in, _ := c.operands(n)
	at := graph.AttrOf[graph.AdamWAttr](n)
	hyper, clip, elems, format := in[4], in[5], n.In[0].Elems(), n.In[0].DType()
	step := func(p []float32, i int) {
		j := i + len(p)
		simd.AdamW(p, in[1][i:j], in[2][i:j], in[3][i:j], simd.AdamWFactors{
			Clip: clip[0], LR: hyper[graph.HyperLR], Beta1: hyper[graph.HyperBeta1], Beta2: hyper[graph.HyperBeta2],
			Bias1: hyper[graph.HyperBias1], Bias2: hyper[graph.HyperBias2], Eps: hyper[graph.HyperEps],
			Decay: at.Decay * hyper[graph.HyperWeightDecay],
		})
	}
	if format == graph.F32 {
		return c.overElems(elems, func(i, j int) {
			if clip[0] != 0 {
				step(in[0][i:j], i)
			}
		})
	}
	load, store := loadOf(format, in[0], elems), storeOf(format, in[0], elems)
	if in[6] != nil {
		store = storeStochastic(at, int32s(in[6]), uint16s(in[0], elems))
	}
	c.scratch.grow(taskElems)
	return c.overRows(elems, 1, func(w *workerScratch, i, j int) {
		if clip[0] == 0 {
			return
		}
		p := w.f32[0][:j-i]
		load(p, i)
		step(p, i)
		store(p, i)
	})
}

// storeStochastic gives what rounds elements from i on, an even number, as graph.Builder.AdamW says.
func storeStochastic(at graph.AdamWAttr, key []int32, h []uint16) func(x []float32, i int) {
	return func(x []float32, i int) {
		s := rng.OfKey([graph.KeyLen]uint32{uint32(key[0]), uint32(key[1]), uint32(key[2]), uint32(key[3])})
		s.Word = uint64(at.Tensor)<<34 + uint64(at.First+i)/2
		r := rng.Restore(s)
		var word uint32
		for j, f := range x {
			if j%2 == 0 {
				word = r.Uint32()
			}
			h[i+j] = stochasticBF16(f, uint16(word>>(16*(j%2))))
		}
	}
}

// stochasticBF16 adds random bits to those that bf16 has not, and cuts these off. A NaN stays one.
func stochasticBF16(x float32, random uint16) uint16 {
	b := math.Float32bits(x)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + uint32(random)) >> 16)
}
