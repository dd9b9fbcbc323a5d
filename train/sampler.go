package train

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// Sampler chooses a token by its logit. The zero value takes the likeliest.
type Sampler struct {
	Temperature float64 // divides the logits; 0: the likeliest token, always
	TopK        int     // only the k likeliest; 0: all
	TopP        float64 // only the likeliest that together reach this probability, at the temperature (Holtzman et al. 2020); 0 or 1: all
}

// Validate returns a *ConfigError that names the field.
func (s Sampler) Validate() error {
	switch {
	case !(s.Temperature >= 0) || math.IsInf(s.Temperature, 0):
		return badKey("temperature", "%g is not possible: use 0 for the likeliest token, or a positive number such as 0.8", s.Temperature)
	case s.TopK < 0:
		return badKey("top-k", "%d is not possible: use 0 for all tokens, or a positive number such as 40", s.TopK)
	case !(s.TopP >= 0 && s.TopP <= 1):
		return badKey("top-p", "%g is not possible: use a probability up to 1, such as 0.95", s.TopP)
	}
	return nil
}

var errNotFinite = errors.New("the model's logits are not finite: its parameters are broken, perhaps by a run that diverged")

// Pick returns the index of a logit, for u uniform in [0, 1). Among equal logits the lower index is the likelier.
func (s Sampler) Pick(logits []float32, u float64) (int, error) {
	for _, l := range logits {
		if math.IsNaN(float64(l)) || math.IsInf(float64(l), 0) {
			return 0, errNotFinite
		}
	}
	if s.Temperature == 0 {
		best := 0
		for i, l := range logits {
			if l > logits[best] {
				best = i
			}
		}
		return best, nil
	}
	order := make([]int, len(logits))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(logits[b], logits[a]), a-b) })
	if s.TopK > 0 && s.TopK < len(order) {
		order = order[:s.TopK]
	}
	weights, total := make([]float64, len(order)), 0.0
	for i, j := range order {
		weights[i] = math.Exp((float64(logits[j]) - float64(logits[order[0]])) / s.Temperature)
		total += weights[i]
	}
	if s.TopP > 0 && s.TopP < 1 {
		weights, total = nucleus(weights, total*s.TopP)
	}
	u *= total
	for i, w := range weights {
		if u -= w; u < 0 {
			return order[i], nil
		}
	}
	return order[len(weights)-1], nil
}

// nucleus keeps the least number of leading weights that sum to enough.
func nucleus(weights []float64, enough float64) (kept []float64, total float64) {
	for i, w := range weights {
		if total += w; total >= enough {
			return weights[:i+1], total
		}
	}
	return weights, total
}
