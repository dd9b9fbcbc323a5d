package conformance

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/graph"
)

// Bounds of whole programs. Error arithmetic adds up every operator's worst case as if all of them met, and after two blocks of a
// transformer bounds nothing. So the operators' own bounds are followed by sampling (Monte Carlo arithmetic, Parker 1997): the
// float64 program is run again with every element that a node writes moved at random, before it is stored, by up to a quarter of what it may be off by,
// since n roundings add up to about the root of n and a bound counts n. How far a tensor then moves, at most over its elements and the
// samples, is how much the program amplifies rounding.
const (
	noiseSamples  = 4
	narrowSamples = 16 // see bound
	narrowFactor  = 3
	noisePart     = 0.25
	noiseFactor   = 2     // a tensor may be off by this many times the largest move: the samples are few
	noNoise       = 1e-30 // what may be flushed to zero stays, or a second moment of zero would turn negative
)

// addNoise makes a machine move what each node writes within the node's bound.
func addNoise(m *reference.Machine, r *rand.Rand, part float64) {
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
					x[j] += part * e * (2*r.Float64() - 1)
				}
			}
		}
	}
}

// spread is what some of a program's values may be off by, by name.
type spread struct {
	moved   map[string]float64 // how far it moved, at most over samples and elements
	largest map[string]float64 // its largest element
	stored  map[string]float64 // the relative rounding of the format that it is stored in
	factor  float64            // noiseFactor or narrowFactor
}

// sample takes a value of a noisy run into account.
func (s spread) sample(name string, exact, moved []float64) {
	for i := range exact {
		s.moved[name] = math.Max(s.moved[name], math.Abs(moved[i]-exact[i]))
		s.largest[name] = math.Max(s.largest[name], math.Abs(exact[i]))
	}
}

// bound of a value: its moves times a factor, and twice the rounding of what it is made of and stored as, for a scalar may move little by chance.
//
// Why the factor is 3 for the largest of 16 samples where activations have 16 bits. There a rounding that falls to the other side moves an element by a whole
// unit in its last place, and soon all roundings behind it fall in another way, however little the first cause was: a device is off by about as much as a
// sample is, and its error is one more draw from the samples' distribution. For a scalar, a sum of many such moves, that is about normal, so that with F the
// distribution function of |N(0, 1)| the chance of a draw beyond f times the largest of n others is
//
//	∫ (1 - F(f y)) d(F(y)^n) = 1/26 for f = 2, n = 4;  1/790 for 2, 16;  1/5200 for 2.5, 16;  1/31,000 for 3, 16
//
// The programs in 16 bits show about a hundred scalars (losses, norms, gradients of qk_scale): a device that is right is refused for one of them once in
// eight with f = 2, and once in 300 with f = 3. For a tensor of m elements both sides are maxima over m, whose chance is less: 1e-6 for m = 2, 3e-10 for 8. A
// bound by the samples' standard deviation (Student's t, 16 degrees of freedom) at the same risk is 5.8 deviations; 3 times the largest of 16 is 6 of them on
// average: the samples are used as well as they can be.
//
// What is not normal is a rare move, which all samples may miss: one that a run has with probability p is met by a device and by none of 16 samples with
// p (1-p)^16, up to 1/46. Programs in 16 bits are made so that there is none (narrowEps). Of 30 runs of each of the programs of
// TestProgramsIn16BitsSeeFaults, with the samples' noise and other seeds, none left the bounds of its 120 values; the farthest came to 0.97 of one.
//
// That test also says what the bounds are worth: an addend that is left out, a missing 1/sqrt(head_dim), an operand or a block of the run before are 60 to
// thousands of bounds off where all nodes are wrong that can be, and at least 4 where one node is. Sums of 16 to 24 terms that are rounded to bf16 at each
// addition are 2 to 5 off in all products together. In a single product, and in f16 in some programs altogether, they are within the bounds: they are no more
// than roundings that fall to the other side. The operator's own cases see those (TestKitSeesFaultsIn16Bits).
func (s spread) bound(name string) float64 {
	return s.factor*s.moved[name] + 4*s.stored[name]*s.largest[name]
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

// scenario takes programs through steps, one machine each over shared variables, and calls see for every value that is compared.
type scenario struct {
	programs []*graph.Program
	run      func(m []machine, see func(name string, x []float64))
	samples  int         // noisy ones; 0: noiseSamples
	storage  graph.DType // of the programs' activations
}

// part is how much of its bound a node's output is moved by. Where activations are rounded to 16 bits, errors show where a rounding falls to the other
// side, which few samples would miss: there it is all.
func (s scenario) part() float64 {
	if s.storage.Size() == 2 {
		return 1
	}
	return noisePart
}

// storedUnit is the unit of a value's format: that of the storage if all its elements are of that format.
func (s scenario) storedUnit(x []float64) float64 {
	if s.storage.Size() != 2 || slices.ContainsFunc(x, func(v float64) bool { return reference.Round(v, s.storage) != v }) {
		return unit
	}
	if s.storage == graph.BF16 {
		return 0x1p-9
	}
	return 0x1p-12
}

// onReference runs a scenario on interpreters, which prepare may change.
func (s scenario) onReference(prepare func(*reference.Machine) machine, see func(name string, x []float64)) {
	vars := reference.Vars{}
	machines := make([]machine, len(s.programs))
	for i, p := range s.programs {
		machines[i] = prepare(reference.NewOver(p, vars))
	}
	s.run(machines, see)
}

// exact runs a scenario in float64.
func (s scenario) exact() map[string][]float64 {
	values := map[string][]float64{}
	s.onReference(func(m *reference.Machine) machine { return m }, func(name string, x []float64) { values[name] = slices.Clone(x) })
	return values
}

// measure gives a scenario's values in float64, and what float32 may make of them.
func (s scenario) measure() (exact map[string][]float64, moves spread) {
	exact, moves = s.exact(), spread{map[string]float64{}, map[string]float64{}, map[string]float64{}, noiseFactor}
	for name, x := range exact {
		moves.stored[name] = s.storedUnit(x)
	}
	samples := s.samples
	switch {
	case samples > 0:
	case s.storage.Size() == 2:
		samples = narrowSamples
	default:
		samples = noiseSamples
	}
	if s.storage.Size() == 2 {
		moves.factor = narrowFactor
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for i := range samples {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			s.onReference(func(m *reference.Machine) machine {
				addNoise(m, r, s.part())
				return storing{m, r}
			}, func(name string, x []float64) {
				mu.Lock()
				defer mu.Unlock()
				moves.sample(name, exact[name], x)
			})
		})
	}
	wait.Wait()
	return exact, moves
}

// on runs a scenario on a backend.
func (s scenario) on(b backend.Backend, see func(name string, x []float64)) (err error) {
	devices, err := newDevices(b, s.programs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeDevices(devices[0].store, devices)) }()
	machines := make([]machine, len(devices))
	for i, d := range devices {
		machines[i] = d
	}
	s.run(machines, see)
	return nil
}

// check compares a backend's values with float64's.
func (s scenario) check(b backend.Backend) (res outcome) {
	exact, moves := s.measure()
	err := s.on(b, func(name string, got []float64) {
		ratio, err := compare(name, got, exact[name], moves.bound(name))
		res.checks++
		res.worst = math.Max(res.worst, ratio)
		res.err = errors.Join(res.err, err)
	})
	res.err = errors.Join(res.err, err)
	return res
}

// compare judges a device's value by a bound.
func compare(name string, got, want []float64, bound float64) (float64, error) {
	v := verdict{what: name, shape: graph.Shape{len(want)}}
	for i := range want {
		v.add(i, got[i], want[i], ratioOf(got[i], want[i], bound, finite, graph.F32), bound)
	}
	return v.worst, v.err()
}
