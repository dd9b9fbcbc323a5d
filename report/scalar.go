package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
)

// MaxScalarDepth is the most layers of a [ScalarModel].
const MaxScalarDepth = 10_000

// ScalarCurve is what the scalar model says of one placement.
type ScalarCurve struct {
	Placement  string    `json:"placement"`
	Rule       string    `json:"rule"`                 // how a layer changes the variance v
	Variance   []float64 `json:"variance"`             // depth+1 values, from v0 = 1
	Derivative float64   `json:"derivative"`           // dv_L / dv_0, the product of dv_{l+1} / dv_l
	Amplitude  float64   `json:"amplitude_derivative"` // d sqrt(v_L) / d sqrt(v_0) = Derivative sqrt(v_0 / v_L)
}

// scalarRules are the three recurrences: the layer's map of the variance and its derivative with respect to v.
var scalarRules = []struct {
	placement, rule  string
	next, derivative func(v, k float64) float64
}{
	{"post", "v ← 1", func(v, k float64) float64 { return 1 }, func(v, k float64) float64 { return 0 }},
	{"pre", "v ← (1 + k) v", func(v, k float64) float64 { return (1 + k) * v }, func(v, k float64) float64 { return 1 + k }},
	{"peri", "v ← v + 1", func(v, k float64) float64 { return v + 1 }, func(v, k float64) float64 { return 1 }},
}

// ScalarCaveats are what has to be said beside every figure of the model.
var ScalarCaveats = []string{
	"One number stands for a whole layer's hidden state, and each layer for one addition: there is no attention, no direction, no token and no training in it.",
	"The derivative is that of the last variance with respect to the first. It is not the gradient of a loss: that also depends on the direction of the hidden state, which a norm keeps while it fixes the length. " +
		"Post's 0 says that the length is forgotten, not that nothing can be learned.",
	"Pre-LN's factor (1 + k) supposes that each module multiplies the variance that it finds. At initialisation the input norm makes its output independent of that variance, and growth is additive (Kim et al. 2025, eq. 4); " +
		"the factor describes weights that have grown during training, at worst.",
	"A norm on the module's output alone (OLMo 2) has Peri-LN's recurrence here: the model cannot tell them apart, and neither does it know QK-Norm, gains or weight decay.",
}

// ScalarModel follows the variance v of the residual stream through depth layers of Post-LN, Pre-LN and Peri-LN, from v = 1. gain is k, the variance that
// a Pre-LN module adds as a share of what it finds. See ScalarCaveats for what it is not.
func ScalarModel(depth int, gain float64) ([]ScalarCurve, error) {
	if depth < 1 || depth > MaxScalarDepth {
		return nil, fmt.Errorf("depth: %d is not possible: use 1 to %d layers", depth, MaxScalarDepth)
	}
	if !(gain >= 0) || math.IsInf(gain, 0) {
		return nil, fmt.Errorf("gain: %g is not possible: use 0 or a positive number, such as 0.5", gain)
	}
	var curves []ScalarCurve
	for _, r := range scalarRules {
		c := ScalarCurve{Placement: r.placement, Rule: r.rule, Variance: []float64{1}, Derivative: 1}
		v := 1.0
		for range depth {
			c.Derivative *= r.derivative(v, gain)
			v = r.next(v, gain)
			c.Variance = append(c.Variance, v)
		}
		if math.IsInf(v, 0) {
			return nil, fmt.Errorf("gain: %g takes the variance of %s beyond any number in %d layers: use fewer layers or a smaller gain", gain, r.placement, depth)
		}
		c.Amplitude = c.Derivative / math.Sqrt(v)
		curves = append(curves, c)
	}
	return curves, nil
}

//go:embed scalar.html
var scalarHTML string

var scalarTemplate = template.Must(template.New("scalar").Parse(scalarHTML))

// WriteScalarPage writes a page, whole in itself, that draws the model and lets its reader change depth and gain.
func WriteScalarPage(w io.Writer, depth int, gain float64) error {
	section, err := scalarSection(depth, gain)
	if err != nil {
		return err
	}
	return scalarTemplate.ExecuteTemplate(w, "page", section)
}

// scalarData is what the section's template takes. Its script computes the curves anew, from the same recurrences.
type scalarData struct {
	Depth, MaxDepth int
	Gain            float64
	Caveats         []string
	Curves          template.JS // as ScalarModel gives them: what the page shows until its reader changes something
}

func scalarSection(depth int, gain float64) (scalarData, error) {
	curves, err := ScalarModel(depth, gain)
	if err != nil {
		return scalarData{}, err
	}
	raw, err := json.Marshal(curves)
	return scalarData{depth, max(200, depth), gain, ScalarCaveats, template.JS(raw)}, err
}
