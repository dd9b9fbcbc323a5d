package conformance

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/graph"
)

// Bounds of whole programs. Error arithmetic adds up every operator's worst case as if all of them met, and after two blocks of a
// transformer bounds nothing. So the operators' own bounds are followed by sampling (Monte Carlo arithmetic, Parker 1997): the
// float64 program is run again with every element that a node writes moved at random by up to a quarter of what it may be off by,
// since n roundings add up to about the root of n and a bound counts n. How far a tensor then moves, at most over its elements and the
// samples, is how much the program amplifies rounding.
const (
	noiseSamples = 4
	noisePart    = 0.25
	noiseFactor  = 2     // a tensor may be off by this many times the largest move: the samples are few
	noNoise      = 1e-30 // what may be flushed to zero stays, or a second moment of zero would turn negative
)

// addNoise makes a machine move what each node writes within the node's bound.
func addNoise(m *reference.Machine, r *rand.Rand) {
	m.Hook = func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
		nums, results := make([][]num, len(in)), make([][]num, len(out))
		for i, x := range in {
			if x != nil {
				nums[i] = inputs(x, n.In[i].DType())
			}
		}
		for i, x := range out {
			if x != nil {
				results[i] = make([]num, len(x))
			}
		}
		opTests[n.Op].bound(n, nums, results)
		run(n, in, out)
		for i, x := range out {
			for j := range x {
				if e := results[i][j].e; e > noNoise && !math.IsInf(e, 0) {
					x[j] += noisePart * e * (2*r.Float64() - 1)
				}
			}
		}
	}
}

// spread is what some of a program's values may be off by, by name.
type spread struct {
	moved   map[string]float64 // how far it moved, at most over samples and elements
	largest map[string]float64 // its largest element
}

// sample takes a value of a noisy run into account.
func (s spread) sample(name string, exact, moved []float64) {
	for i := range exact {
		s.moved[name] = math.Max(s.moved[name], math.Abs(moved[i]-exact[i]))
		s.largest[name] = math.Max(s.largest[name], math.Abs(exact[i]))
	}
}

// bound of a value: its moves, and twice the rounding of what it is made of and stored as, for a scalar may move little by chance.
func (s spread) bound(name string) float64 {
	return noiseFactor*s.moved[name] + 4*unit*s.largest[name]
}

// storing is a machine that stores what it is given in float32, as a device does, but rounded at random.
type storing struct {
	*reference.Machine
	r *rand.Rand
}

// Set moves floats by up to half an ulp of float32.
func (s storing) Set(name string, data any) {
	if x, ok := data.([]float64); ok {
		moved := slices.Clone(x)
		for i := range moved {
			moved[i] *= 1 + unit*(2*s.r.Float64()-1)
		}
		data = moved
	}
	s.Machine.Set(name, data)
}

// measureSpread runs a program's noisy samples beside the exact one. Run takes a machine through the same steps each time and calls
// see for each value that will be compared.
func measureSpread(p *graph.Program, run func(m machine, see func(name string, x []float64))) (exact map[string][]float64, s spread) {
	exact, s = map[string][]float64{}, spread{map[string]float64{}, map[string]float64{}}
	run(reference.New(p), func(name string, x []float64) { exact[name] = slices.Clone(x) })
	for i := range noiseSamples {
		m, r := reference.New(p), rand.New(rand.NewPCG(uint64(i), 1))
		addNoise(m, r)
		run(storing{m, r}, func(name string, x []float64) { s.sample(name, exact[name], x) })
	}
	return exact, s
}

// compare judges a device's value by a bound.
func compare(name string, got, want []float64, bound float64) (float64, error) {
	v := verdict{what: name, shape: graph.Shape{len(want)}}
	for i := range want {
		v.add(i, got[i], want[i], ratioOf(got[i], want[i], bound, finite, graph.F32), bound)
	}
	return v.worst, v.err()
}
