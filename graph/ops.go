package graph

import "strings"

// Op names an operator. The table below is the whole vocabulary: what each computes, its operands in
// order, and its attributes. An operand in brackets is optional: its place is then nil.
//
// "addend" operands are added to the result: out = addend + f(...). An addend may be the output itself
// (accumulation in place): implementations read and write the same index in the same place, so this is
// always allowed. No other input of a node may overlap its outputs unless the table says so.
//
// Numbers: every operator computes in float32 or wider. eps is always inside the root. An inf or a NaN
// in an input comes out in each output element that depends on it.
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
	NumOps
)

// opTable is indexed by Op: the name, and the operands in order as they are printed in error messages; "[x]" is optional.
var opTable = [NumOps]struct{ name, in, out string }{
	OpEmbedding:        {"embedding", "table tokens", "y"},
	OpEmbeddingGrad:    {"embedding_grad", "tokens dy [addend]", "dtable"},
	OpMatMul:           {"matmul", "a b [addend]", "c"},
	OpRMSNorm:          {"rms_norm", "x [gain] [addend]", "y"},
	OpRMSNormGrad:      {"rms_norm_grad", "dy x [gain] [addend]", "dx [dgain_rows]"},
	OpLayerNorm:        {"layer_norm", "x [gain] [addend]", "y"},
	OpLayerNormGrad:    {"layer_norm_grad", "dy x [gain] [addend]", "dx [dgain_rows]"},
	OpQKNormRoPE:       {"qk_norm_rope", "x [gain]", "y"},
	OpQKNormRoPEGrad:   {"qk_norm_rope_grad", "dy x [gain]", "dx [dgain_rows]"},
	OpAttention:        {"attention", "q k v [scale]", "o lse"},
	OpAttentionGrad:    {"attention_grad", "do q k v o lse [scale]", "dq dk dv delta [dscale_rows]"},
	OpSoftmax:          {"softmax", "x", "y"},
	OpSoftmaxGrad:      {"softmax_grad", "dy y", "dx"},
	OpSwiGLU:           {"swiglu", "gate up", "y"},
	OpSwiGLUGrad:       {"swiglu_grad", "dy gate up", "dgate dup"},
	OpGELU:             {"gelu", "x", "y"},
	OpGELUGrad:         {"gelu_grad", "dy x", "dx"},
	OpReLU:             {"relu", "x", "y"},
	OpReLUGrad:         {"relu_grad", "dy x", "dx"},
	OpSoftCap:          {"soft_cap", "x", "y"},
	OpSoftCapGrad:      {"soft_cap_grad", "dy y", "dx"},
	OpCrossEntropy:     {"cross_entropy", "logits targets", "losses lse"},
	OpCrossEntropyGrad: {"cross_entropy_grad", "logits targets lse dlosses", "dlogits"},
	OpAdd:              {"add", "a b", "c"},
	OpSum:              {"sum", "x [scale]", "y"},
	OpBroadcast:        {"broadcast", "x [scale]", "y"},
	OpSumRows:          {"sum_rows", "x [addend]", "y"},
	OpFill:             {"fill", "", "y"},
	OpSumSquares:       {"sum_squares", "x", "partials"},
	OpClipNorm:         {"clip_norm", "partials", "norm factor"},
	OpAdamW:            {"adamw", "p m v g hyper clip", "p m v"},
	OpCast:             {"cast", "x", "y"},
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
