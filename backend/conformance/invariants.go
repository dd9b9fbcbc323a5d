package conformance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
)

// Exact invariants. Where a module's output is normalised before it is added to the residual stream (Peri-LN, OLMo 2), the scale
// of W_down, W_o and W_v has no effect on the loss: W times 10 leaves it as it is and makes the gradient a tenth, so that the gradient is
// orthogonal to W, <W, dL/dW> = 0 (Euler's theorem for a function that is homogeneous of degree 0). With QK-Norm the same
// is true of W_q and W_k.

// scaleFree lists the parameters whose scale has no effect on a model's loss.
func scaleFree(c model.Config) []string {
	pos, err := model.ParsePlacement(c.Placement)
	must(err)
	var names []string
	for _, p := range c.Params() {
		for suffix, free := range map[string]bool{
			"down_proj.weight": pos.Output, "o_proj.weight": pos.Output, "v_proj.weight": pos.Output,
			"q_proj.weight": c.QKNorm != model.QKNormNone, "k_proj.weight": c.QKNorm != model.QKNormNone,
		} {
			if free && strings.HasSuffix(p.Name, suffix) {
				names = append(names, p.Name)
			}
		}
	}
	return names
}

// invariantModel has an eps that does not show beside the numbers it is added to.
func invariantModel(placement, qkNorm string) model.Config {
	return smallModel(func(c *model.Config) {
		c.Placement, c.QKNorm, c.NormEps = placement, qkNorm, 1e-12
	})
}

func invariantCases() []testCase {
	var list []testCase
	for _, s := range [][2]string{{"peri", model.QKNormNone}, {"peri", model.QKNormRMS}, {"olmo2", model.QKNormRMSFull}, {"pre", model.QKNormLayerNorm}, {"post", model.QKNormL2}} {
		t := training{config: invariantModel(s[0], s[1]), batch: 2}
		list = append(list, scenarioCase("invariants", s[0]+" "+s[1], func() (scenario, error) {
			return t.invariants(scaleFree(t.config))
		}))
	}
	return list
}

// invariants shows the inner products of parameters with their gradients, and what scaling each kind of them by 10 does to the loss and to
// ten times its gradient. The learning rate is 0, so that parameters stay.
func (t training) invariants(names []string) (scenario, error) {
	p, err := t.step(true)
	run := func(m []machine, see func(string, []float64)) {
		setParams(m[0], t.config)
		clearMoments(m[0], t.config)
		tokens, targets := text(rand.New(rand.NewPCG(13, 13)), t)
		t.feed(m[0], tokens, targets)
		m[0].Set("hyper", hyper(1, 0, 0.9, 0.95, 1e-8, 0))
		must(m[0].Run())
		see("loss", m[0].Get("loss"))
		weights, grads := map[string][]float64{}, map[string][]float64{}
		for _, name := range names {
			weights[name], grads[name] = m[0].Get(name), m[0].Get("grad."+name)
			see(fmt.Sprintf("<W, dL/dW> of %s", name), []float64{inner(weights[name], grads[name])})
			see("grad."+name, grads[name])
		}
		for _, kind := range []string{"down_proj", "o_proj", "v_proj", "q_proj", "k_proj"} {
			of := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.Contains(name, "."+kind+".") })
			if len(of) == 0 {
				continue
			}
			for _, name := range of {
				m[0].Set(name, times(10, weights[name]))
			}
			must(m[0].Run())
			see("loss with 10 "+kind, m[0].Get("loss"))
			for _, name := range of {
				see(fmt.Sprintf("10 times grad.%s with 10 %s", name, kind), times(10, m[0].Get("grad."+name)))
				m[0].Set(name, weights[name])
			}
		}
	}
	return scenario{programs: []*graph.Program{p}, run: run}, err
}

func inner(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

func times(by float64, x []float64) []float64 {
	y := make([]float64, len(x))
	for i := range x {
		y[i] = by * x[i]
	}
	return y
}
