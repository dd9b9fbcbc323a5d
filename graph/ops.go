package graph

import (
	"slices"
	"strings"
)

// Op names an operator. The table below is the whole vocabulary: what each computes, its operands in
// order, and its attributes. An operand in brackets is optional: its place is then nil.
//
// "addend" operands are added to the result: out = addend + f(...). An addend may be the output itself
// (accumulation in place): implementations read and write the same index in the same place, so this is
// always allowed. No other input of a node may overlap its outputs, but an output may take the whole place of an input that the
// last column of the table names, on backends that plan with PlanOptions.InPlace.
//
// Numbers: every operator computes in float32 or wider. eps is always inside the root. An inf or a NaN
// in an input comes out in each output element that depends on it. Activations and their gradients may be bf16 or f16: such an input is
// widened, which is exact, and such an output is rounded once, to nearest even.
type Op uint8

const (
	OpInvalid Op = iota
	OpEmbedding
	OpEmbeddingGrad
	OpMatMul
	OpRMSNorm
	OpRMSNormGrad
	OpLayerNorm
	OpLayerNormGrad
	OpQKNormRoPE
	OpQKNormRoPEGrad
	OpAttention
	OpAttentionGrad
	OpSoftmax
	OpSoftmaxGrad
	OpSwiGLU
	OpSwiGLUGrad
	OpGELU
	OpGELUGrad
	OpReLU
	OpReLUGrad
	OpSoftCap
	OpSoftCapGrad
	OpCrossEntropy
	OpCrossEntropyGrad
	OpAdd
	OpSum
	OpBroadcast
	OpSumRows
	OpFill
	OpSumSquares
	OpClipNorm
	OpAdamW
	OpCast
	OpRowMoments
	OpSummary
	OpTopMagnitudes
	OpDots
	OpAdamWStats
	OpRowAngle
	OpRowNorms
	NumOps
)

// opTable is indexed by Op: the name, the operands in order as they are printed in error messages ("[x]" is optional), which outputs may take
// the place of which inputs, the best choice first: those that a row of the output (an element, for operators without rows) is computed
// from the same row of; and which operands may be bf16 or f16, each by itself.
var opTable = [NumOps]struct{ name, in, out, inPlace, narrow string }{
	OpEmbedding:        {"embedding", "table tokens", "y", "", "table y"},
	OpEmbeddingGrad:    {"embedding_grad", "tokens dy [addend]", "dtable", "", "dy"},
	OpMatMul:           {"matmul", "a b [addend]", "c", "c=addend", "a b addend c"},
	OpRMSNorm:          {"rms_norm", "x [gain] [addend]", "y", "y=x y=addend", "x addend y"},
	OpRMSNormGrad:      {"rms_norm_grad", "dy x [gain] [addend]", "dx [dgain_rows]", "dx=dy dx=addend dx=x", "dy x addend dx"},
	OpLayerNorm:        {"layer_norm", "x [gain] [addend]", "y", "y=x y=addend", "x addend y"},
	OpLayerNormGrad:    {"layer_norm_grad", "dy x [gain] [addend]", "dx [dgain_rows]", "dx=dy dx=addend dx=x", "dy x addend dx"},
	OpQKNormRoPE:       {"qk_norm_rope", "x [gain]", "y", "y=x", "x y"},
	OpQKNormRoPEGrad:   {"qk_norm_rope_grad", "dy x [gain]", "dx [dgain_rows]", "dx=dy dx=x", "dy x dx"},
	OpAttention:        {"attention", "q k v [scale]", "o lse [top] [entropy]", "", "q k v o"},
	OpAttentionGrad:    {"attention_grad", "do q k v o lse [scale]", "dq dk dv delta [dscale_rows]", "", "do q k v o dq dk dv"},
	OpSoftmax:          {"softmax", "x", "y", "y=x", "x y"},
	OpSoftmaxGrad:      {"softmax_grad", "dy y", "dx", "dx=dy dx=y", "dy y dx"},
	OpSwiGLU:           {"swiglu", "gate up", "y", "y=gate y=up", "gate up y"},
	OpSwiGLUGrad:       {"swiglu_grad", "dy gate up", "dgate dup", "dgate=gate dup=up dgate=dy dup=dy", "dy gate up dgate dup"},
	OpGELU:             {"gelu", "x", "y", "y=x", "x y"},
	OpGELUGrad:         {"gelu_grad", "dy x", "dx", "dx=dy dx=x", "dy x dx"},
	OpReLU:             {"relu", "x", "y", "y=x", "x y"},
	OpReLUGrad:         {"relu_grad", "dy x", "dx", "dx=dy dx=x", "dy x dx"},
	OpSoftCap:          {"soft_cap", "x", "y", "y=x", "x y"},
	OpSoftCapGrad:      {"soft_cap_grad", "dy y", "dx", "dx=dy dx=y", "dy y dx"},
	OpCrossEntropy:     {"cross_entropy", "logits targets", "losses lse", "", "logits"},
	OpCrossEntropyGrad: {"cross_entropy_grad", "logits targets lse dlosses", "dlogits", "dlogits=logits", "logits dlogits"},
	OpAdd:              {"add", "a b", "c", "c=a c=b", "a b c"},
	OpSum:              {"sum", "x [scale]", "y", "", "x"},
	OpBroadcast:        {"broadcast", "x [scale]", "y", "", "y"},
	OpSumRows:          {"sum_rows", "x [addend]", "y", "", ""},
	OpFill:             {"fill", "", "y", "", "y"},
	OpSumSquares:       {"sum_squares", "x", "partials", "", "x"},
	OpClipNorm:         {"clip_norm", "partials [scale]", "norm factor", "", ""},
	OpAdamW:            {"adamw", "p m v g hyper clip [key]", "p m v", "", "p"},
	OpCast:             {"cast", "x", "y", "", "x y"},
	OpRowMoments:       {"row_moments", "x", "mean variance", "", "x"},
	OpSummary:          {"summary", "x [minus]", "y", "", "x minus"},
	OpTopMagnitudes:    {"top_magnitudes", "x", "y", "", "x"},
	OpDots:             {"dots", "u v", "y", "", "u v"},
	OpAdamWStats:       {"adamw_stats", "p m v g hyper clip", "y", "", "p"},
	OpRowAngle:         {"row_angle", "x y", "a", "", "x y"},
	OpRowNorms:         {"row_norms", "x [times] [over]", "y", "", "x times over"},
}

// String gives the operator's name in printed programs.
func (op Op) String() string {
	if op == OpInvalid || op >= NumOps {
		return "invalid"
	}
	return opTable[op].name
}

// Ops lists every operator, in order.
func Ops() []Op {
	ops := make([]Op, 0, NumOps-1)
	for op := OpInvalid + 1; op < NumOps; op++ {
		ops = append(ops, op)
	}
	return ops
}

// Operands gives the names of the operator's inputs and outputs in order; an optional one stands in brackets.
func (op Op) Operands() (in, out []string) {
	return strings.Fields(opTable[op].in), strings.Fields(opTable[op].out)
}

// Place says that an output of a node may have the storage of an input, by their indices in Node.Out and Node.In.
type Place struct{ Out, In int }

// InPlace lists the outputs that may take the place of an input, the best choice first.
func (op Op) InPlace() []Place { return opPlaces[op] }

var opPlaces = parsePlaces()

func parsePlaces() (places [NumOps][]Place) {
	for op := range NumOps {
		in, out := op.Operands()
		index := func(names []string, name string) int {
			return slices.IndexFunc(names, func(s string) bool { return strings.Trim(s, "[]") == name })
		}
		for _, pair := range strings.Fields(opTable[op].inPlace) {
			o, i, _ := strings.Cut(pair, "=")
			places[op] = append(places[op], Place{index(out, o), index(in, i)})
		}
	}
	return places
}

// Narrow tells, of inputs and outputs in order, which operands may be bf16 or f16. All others but tokens, targets and keys are f32.
func (op Op) Narrow() (in, out []bool) { return opNarrow[op].in, opNarrow[op].out }

var opNarrow = parseNarrow()

func parseNarrow() (narrow [NumOps]struct{ in, out []bool }) {
	for op := range NumOps {
		may := strings.Fields(opTable[op].narrow)
		is := func(names []string) []bool {
			list := make([]bool, len(names))
			for i, name := range names {
				list[i] = slices.Contains(may, strings.Trim(name, "[]"))
			}
			return list
		}
		in, out := op.Operands()
		narrow[op].in, narrow[op].out = is(in), is(out)
	}
	return narrow
}
