package conformance

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/graph"
)

func sumSquaresCases() []opCase {
	var list []opCase
	for _, s := range [][]int{{1}, {7, 9}, {64}, {5, 13}, {3, 7, 31}, {4099}, {70001}} {
		c := opCase{name: dims(s...), in: []tensor{f32(s...)}, out: []tensor{f32(graph.SumSquaresParts)}, extra: onlyEnds(0)}
		if len(s) == 3 {
			c.special = true
			c.extra = []variant{{name: "1e15", set: scaleBy(1e15, 0)}, {name: "1e-30", set: scaleBy(1e-30, 0)}}
		}
		list = append(list, c)
	}
	return list
}

func sumSquaresBound(_ *graph.Node, in, out [][]num) {
	x := in[0]
	chunk := (len(x) + graph.SumSquaresParts - 1) / graph.SumSquaresParts
	for i := range out[0] {
		part := x[min(len(x), i*chunk):min(len(x), (i+1)*chunk)]
		out[0][i] = exact(0)
		if len(part) > 0 {
			out[0][i] = dotNum(part, part)
		}
	}
}

func clipNormCases() []opCase {
	var list []opCase
	for _, s := range []struct {
		name  string
		shape []int
		limit float32
		scale bool
	}{{"never", []int{64}, 0, false}, {"below", []int{3, 64}, 1000, false}, {"above", []int{64}, 1, false}, {"above", []int{37, 64}, 0.5, false},
		{"never", []int{7}, 0, true}, {"below", []int{64}, 1000, true}, {"above", []int{5, 64}, 1e-3, true},
	} {
		c := opCase{name: dims(s.shape...) + " " + s.name, attr: graph.ClipNormAttr{MaxNorm: s.limit}, special: true,
			in: []tensor{f32(s.shape...).with(uniform(0, 2)), {}}, out: []tensor{f32(1), f32(1)}}
		c.extra = []variant{{name: "zeros", set: scaleBy(0, 0)}, {name: "1e30", set: scaleBy(1e30, 0)}, {name: "1e-30", set: scaleBy(1e-30, 0)}}
		if s.scale {
			c.name += " scale"
			c.in[1] = f32(1).with(uniform(2, 1<<16))
		}
		list = append(list, c)
	}
	return list
}

func clipNormBound(n *graph.Node, in, out [][]num) {
	limit := float64(graph.AttrOf[graph.ClipNormAttr](n).MaxNorm)
	scale := exact(1)
	if in[1] != nil {
		scale = in[1][0]
	}
	norm := sumNum(in[0]...).sqrt().div(scale)
	factor := exact(1)
	switch {
	case math.IsNaN(norm.v) || math.IsInf(norm.v, 0):
		factor = exact(0)
	case math.IsInf(norm.e, 0):
		factor.e = math.Inf(1)
	case limit != 0:
		switch f := exact(limit).div(norm.add(num{1e-6, 1e-6 * unit})); {
		case f.v-f.e > 1: // surely below the limit
		case f.v > 1:
			factor.e = f.e
		default:
			factor = f
		}
	}
	out[0][0], out[1][0] = norm, factor
	if in[1] != nil && factor.v != 0 {
		out[1][0] = factor.div(scale)
	}
}

func adamWCases() []opCase {
	var list []opCase
	for _, s := range []struct {
		shape []int
		decay float32
		step  float64
	}{{[]int{1}, 1, 1}, {[]int{5, 13}, 1, 3}, {[]int{257}, 0, 2}, {[]int{3, 3, 7}, 0.5, 1000}, {[]int{70001}, 1, 10}} {
		t := f32(s.shape...)
		c := opCase{name: dims(s.shape...), attr: graph.AdamWAttr{Decay: s.decay},
			in:  []tensor{t, t.with(normal(0, 0.1)), t.with(uniform(0, 0.1)), t, f32(graph.HyperLen).with(hyperOf(s.step)), f32(1).with(uniform(0.1, 1)), {}},
			out: []tensor{t, t, t}, inPlace: map[int]int{0: 0, 1: 1, 2: 2}}
		if s.decay == 1 && len(s.shape) == 2 {
			c.special = true
			c.extra = []variant{
				{name: "the first step", set: scaleBy(0, 1, 2)},
				{name: "no gradient yet", set: scaleBy(0, 1, 2, 3)},
				{name: "gradients of 1e-8, where eps decides", set: func(in [][]float64, r *rand.Rand) {
					scaleBy(1e-8, 1, 3)(in, r)
					scaleBy(1e-16, 2)(in, r)
				}},
				{name: "gradients of 1e-30", set: func(in [][]float64, r *rand.Rand) {
					scaleBy(1e-30, 1, 3)(in, r)
					scaleBy(0, 2)(in, r)
				}},
				{name: "a clip factor of 0", set: scaleBy(0, 5)},
			}
		}
		list = append(list, c, c.stochastic(s.decay, 7*len(list)))
	}
	return list
}

// stochastic is a case of adamw with a key.
func (c opCase) stochastic(decay float32, number int) opCase {
	c.name += " bf16 stochastic"
	c.attr = graph.AdamWAttr{Decay: decay, Tensor: uint32(1<<30 - 1 - number), First: 8 * number * number}
	c.in, c.out = slices.Clone(c.in), slices.Clone(c.out)
	c.in[0].dtype, c.out[0].dtype = graph.BF16, graph.BF16
	c.in[6] = tensor{shape: graph.Shape{graph.KeyLen}, fill: index(math.MinInt32, math.MaxInt32), dtype: graph.I32}
	c.round = func(n *graph.Node, in [][]float64, _, i int, x float64) float64 {
		return reference.Stochastic(x, reference.Random(n, in[6], i))
	}
	return c
}

// hyperOf gives the settings of a step, 1 for the first.
func hyperOf(step float64) filler {
	return func(_ *rand.Rand, x []float64) {
		x[graph.HyperLR], x[graph.HyperBeta1], x[graph.HyperBeta2] = 0.01, 0.9, 0.95
		x[graph.HyperEps], x[graph.HyperWeightDecay] = 1e-8, 0.1
		x[graph.HyperBias1], x[graph.HyperBias2] = 1-math.Pow(0.9, step), 1-math.Pow(0.95, step)
	}
}

func adamWBound(n *graph.Node, in, out [][]num) {
	hyper, clip, one := in[4], in[5][0], exact(1)
	decay := exact(float64(graph.AttrOf[graph.AdamWAttr](n).Decay)).mul(hyper[graph.HyperWeightDecay]).mul(hyper[graph.HyperLR])
	for i := range in[0] {
		if clip.v == 0 {
			out[0][i], out[1][i], out[2][i] = in[0][i], in[1][i], in[2][i]
			continue
		}
		m, v, step := adamWStepNum(in, i)
		out[0][i], out[1][i], out[2][i] = in[0][i].mul(one.sub(decay)).sub(step), m, v
	}
}

// adamWStepNum gives the moments of element i after a step of adamw, and what it takes off the parameter beside the decay.
func adamWStepNum(in [][]num, i int) (m, v, step num) {
	hyper, one, g := in[4], exact(1), in[3][i].mul(in[5][0])
	beta1, beta2 := hyper[graph.HyperBeta1], hyper[graph.HyperBeta2]
	m = dotNum([]num{beta1, one.sub(beta1)}, []num{in[1][i], g})
	v = dotNum([]num{beta2, one.sub(beta2)}, []num{in[2][i], g.mul(g)})
	root := v.div(hyper[graph.HyperBias2]).sqrt().add(hyper[graph.HyperEps])
	return m, v, hyper[graph.HyperLR].mul(m.div(hyper[graph.HyperBias1])).div(root)
}
