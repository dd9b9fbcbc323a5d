package train

import (
	"encoding/json"
	"math"
)

// Diagnosis is what a diagnosed step tells of the inside of the model: all of it is of the parameters before the step's update, and of the step's last
// micro-batch where there are several, but for the gradients in Parameters, which are the whole step's. Variances are over the channels of a token (the population's),
// averaged over the tokens. Norms are Euclidean. Gradients are those of the loss, whatever scale it is multiplied by in f16. Nothing has a unit but what says so.
type Diagnosis struct {
	Embedding Stream           `json:"embedding"`       // the residual stream that the first layer finds, after the embedding norm if there is one
	Layers    []LayerDiagnosis `json:"layers"`          // from the first
	Final     Stream           `json:"final"`           // the head's input, after the final norm if there is one
	Outside   Parameters       `json:"outside"`         // of parameters in no layer: embedding, final norm, head
	Gains     []GainStats      `json:"gains,omitempty"` // of the norms in no layer: the embedding's, the final one
	Bound     *GradientBound   `json:"bound,omitempty"` // always there; nil in files of versions that left it out of some runs
}

// LayerDiagnosis is of one layer.
type LayerDiagnosis struct {
	Attention  Sublayer    `json:"self_attn"`
	MLP        Sublayer    `json:"mlp"`
	Logits     Attention   `json:"attention"`
	Angle      Number      `json:"angle"` // arccos(cos(x_l, x_{l+1})) / pi, mean over tokens: how much the layer turns its input (Gromov et al. 2024)
	Parameters             // of the layer
	Gains      []GainStats `json:"gains,omitempty"` // of its norms, in the order of their names; QK scales too
}

// Stream is of a hidden state.
type Stream struct {
	Variance Number   `json:"variance"`
	Largest  []Number `json:"largest"`   // the 100 largest magnitudes downwards; fewer where there are fewer elements. Float16 ends at 65,504
	F16Share Number   `json:"f16_share"` // the largest over 65,504: 1 is where float16 ends
	Overflow Number   `json:"over_f16"`  // how many magnitudes are over 65,504 or not finite
}

// Sublayer is of attention or the MLP.
type Sublayer struct {
	Stream         // the residual stream after it, and after the norm of the sum where there is one
	Output Number  `json:"output_variance"`           // of the module's output, before its output norm
	Normed *Number `json:"normed_variance,omitempty"` // after its output norm; nil where there is none
}

// UnmarshalJSON tells a Normed that is not finite, and null, from one that is not there.
func (s *Sublayer) UnmarshalJSON(data []byte) error {
	type plain Sublayer
	read := struct {
		*plain
		Normed json.RawMessage `json:"normed_variance"`
	}{plain: (*plain)(s)}
	if err := json.Unmarshal(data, &read); err != nil || read.Normed == nil {
		return err
	}
	s.Normed = new(Number)
	return s.Normed.UnmarshalJSON(read.Normed)
}

// Attention is of a layer's logits, over all heads and rows.
type Attention struct {
	LargestLogit Number `json:"largest_logit"`
	Entropy      Number `json:"entropy"` // mean, in nats
	OneHot       Number `json:"one_hot"` // share of rows, of those with more than one key, whose largest probability is at least 0.99
}

// Parameters is of a group of parameters.
type Parameters struct {
	GradNorm Number                    `json:"grad_norm"` // of all of them together, before clipping
	Kinds    map[string]ParameterStats `json:"kinds"`     // by the parameter's name within its layer, such as self_attn.q_proj.weight
}

// ParameterStats is of one parameter.
type ParameterStats struct {
	GradNorm    Number `json:"grad_norm"`    // before clipping
	Norm        Number `json:"norm"`         // of the parameter
	UpdateRatio Number `json:"update_ratio"` // |update| / |parameter|, the decay included
	UpdateCos   Number `json:"update_cos"`   // cosine of the update and the parameter
}

// GainStats is of a norm's gain.
type GainStats struct {
	Name string `json:"name"` // within its layer
	Mean Number `json:"mean"`
	Min  Number `json:"min"`
	Max  Number `json:"max"`
}

// GradientBound holds proposition 3.1 of Kim et al. 2025 for the last MLP: W2 is its down projection, h what it multiplies, a = h W2ᵀ its output, o the output of the
// module (after its output norm, of gain γ). The bound on |dL/dW2| is a sum over tokens of
//
//	|h| |dL/do|                               without an output norm
//	|h| |dL/do| max|γ| sqrt(D) / |a|            where a RMSNorm follows
//	|h| |dL/do| max|γ| sqrt(D) / |a - mean(a)|  where a LayerNorm does
//
// dL/dW2 is the sum over tokens of the outer products of dL/da and h, whose norm is |dL/da| |h|. A RMSNorm o = γ a/r, r² = |a|²/D + eps, has the derivative
// (I - a aᵀ/(D r²)) γ/r, of which the matrix in brackets has the eigenvalue 1 - |a|²/(D r²), from 0 to 1, along a, and 1 across it: |dL/da| <= max|γ| |dL/do| / r, and
// r >= |a|/sqrt(D). The paper has the greatest |h| / |a| of all tokens in place of a sum. For a LayerNorm, of which it does not tell, let P = I - 1 1ᵀ/D take off
// the mean, so that b = P a = a - mean(a) and o = γ b/s, s² = |b|²/D + eps. As b does not change along 1, the derivative with regard to a is P (I - b bᵀ/(D s²)) γ/s: P
// is a projection, which makes no vector longer, and the rest is as before with b for a, so that |dL/da| <= max|γ| |dL/do| / s and s >= |a - mean(a)|/sqrt(D). It is
// |a - mean(a)| and not |a| that the gradient is over: a far from 0 whose channels are nearly alike has a large |a| and a large gradient.
//
// In a step of several micro-batches all of it is of the last one, its GradNorm too: the sum of all gradients is bound by the sum of such bounds, but dL/do of the
// others is gone. As the loss is the mean over the step's targets, that is a part of it.
type GradientBound struct {
	Hidden   Number `json:"h"`         // |h|, mean over tokens
	Output   Number `json:"a"`         // |a|, mean over tokens; |a - mean(a)| where a LayerNorm follows
	GradNorm Number `json:"grad_norm"` // |dL/dW2|, measured, before clipping
	Bound    Number `json:"bound"`
}

// Number is a float in JSON, null where it is not finite, which JSON cannot say; null is read as NaN.
type Number float64

// MarshalJSON writes null for what is not finite.
func (n Number) MarshalJSON() ([]byte, error) {
	if f := float64(n); math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads null as NaN.
func (n *Number) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*n = Number(math.NaN())
		return nil
	}
	return json.Unmarshal(data, (*float64)(n))
}
