package model

import (
	"fmt"
	"math"

	"github.com/vktrain/vktrain/graph"
)

// Role says what a parameter is for. Rules such as weight decay go by it, never by the name.
type Role uint8

const (
	RoleEmbedding  Role = iota // the token table; when tied, the head too
	RoleHead                   // the output head
	RoleMatrix                 // a projection of a block
	RoleEmbedGain              // the gain of the norm of the embedding
	RoleInputGain              // of a module's input (position A)
	RoleOutputGain             // of a module's output (B)
	RoleSumGain                // after the addition (C)
	RoleFinalGain              // of the norm before the head
	RoleQKGain                 // of the queries' or keys' norm
	RoleQKScale                // the learnable scale of qk_norm l2
)

var roleNames = [...]string{
	RoleEmbedding: "embedding", RoleHead: "head", RoleMatrix: "matrix", RoleEmbedGain: "embed_gain", RoleInputGain: "input_gain",
	RoleOutputGain: "output_gain", RoleSumGain: "sum_gain", RoleFinalGain: "final_gain", RoleQKGain: "qk_gain", RoleQKScale: "qk_scale",
}

// Roles lists every role.
func Roles() []Role {
	roles := make([]Role, len(roleNames))
	for i := range roles {
		roles[i] = Role(i)
	}
	return roles
}

// String gives embedding, head, matrix, input_gain and so on.
func (r Role) String() string { return roleNames[r] }

// IsMatrix tells the roles of parameters with two axes: the embedding, the head and the projections.
func (r Role) IsMatrix() bool { return r <= RoleMatrix }

// Var declares the variable of a parameter: matrices in the masters' format, others in f32.
func (p Param) Var(b *graph.Builder, masters graph.DType) *graph.Value {
	d := graph.F32
	if p.Role.IsMatrix() {
		d = masters
	}
	return b.Var(p.Name, d, p.Shape...)
}

// Param is a parameter of a config. Its initial value is Mean + Std N(0, 1) in each element.
type Param struct {
	Name  string
	Shape graph.Shape
	Role  Role
	Mean  float64
	Std   float64
}

// The names of the parameters outside the blocks. HF Llama's, where it has them.
const (
	nameEmbedding = "model.embed_tokens.weight"
	nameEmbedNorm = "model.embed_norm.weight"
	nameFinalNorm = "model.norm.weight"
	nameHead      = "lm_head.weight"
)

// module names the three norms of one of a block's modules.
type module struct {
	input, output, sum string
}

// layerName is the name of a parameter of block i.
func layerName(i int, name string) string { return fmt.Sprintf("model.layers.%d.%s", i, name) }

// modules gives the norms' names of a block's attention and MLP. The norm after the sum has a name of its own only beside one of
// the output: alone it is called as that one, for Post-LN has those names.
func modules(i int, pos Positions) (attn, mlp module) {
	attnSum, mlpSum := "attn_output_layernorm.weight", "mlp_output_layernorm.weight"
	if pos.Output {
		attnSum, mlpSum = "attn_sum_layernorm.weight", "mlp_sum_layernorm.weight"
	}
	attn = module{layerName(i, "input_layernorm.weight"), layerName(i, "attn_output_layernorm.weight"), layerName(i, attnSum)}
	mlp = module{layerName(i, "post_attention_layernorm.weight"), layerName(i, "mlp_output_layernorm.weight"), layerName(i, mlpSum)}
	return attn, mlp
}

// paramList collects parameters in order.
type paramList struct {
	c    Config
	pos  Positions
	list []Param
}

// Params lists the parameters in the order of the forward pass. The config must be valid.
func (c Config) Params() []Param {
	c, pos := c.valid()
	l := &paramList{c: c, pos: pos}
	l.list = append(l.list, Param{Name: nameEmbedding, Shape: graph.Shape{c.VocabSize, c.DModel}, Role: RoleEmbedding, Std: l.embeddingStd()})
	if c.EmbedNorm {
		l.gain(nameEmbedNorm, c.DModel, RoleEmbedGain)
	}
	for i := range c.NLayers {
		l.block(i)
	}
	if c.FinalNorm {
		l.gain(nameFinalNorm, c.DModel, RoleFinalGain)
	}
	if !c.Tied {
		l.matrix(nameHead, c.VocabSize, c.DModel, RoleHead, 1)
	}
	return l.list
}

func (l *paramList) block(i int) {
	c := l.c
	qWidth, kvWidth, residual := c.NHeads*c.HeadDim, c.NKVHeads*c.HeadDim, 1.0
	if c.ScaleResidualInit {
		residual = l.invSqrt2N()
	}
	attn, mlp := modules(i, l.pos)
	l.inputNorm(attn)
	l.matrix(layerName(i, "self_attn.q_proj.weight"), qWidth, c.DModel, RoleMatrix, 1)
	l.matrix(layerName(i, "self_attn.k_proj.weight"), kvWidth, c.DModel, RoleMatrix, 1)
	l.matrix(layerName(i, "self_attn.v_proj.weight"), kvWidth, c.DModel, RoleMatrix, 1)
	l.qkNorm(i, qWidth, kvWidth)
	l.matrix(layerName(i, "self_attn.o_proj.weight"), c.DModel, qWidth, RoleMatrix, residual)
	l.outputNorms(attn)
	l.inputNorm(mlp)
	if c.MLP == MLPSwiGLU {
		l.matrix(layerName(i, "mlp.gate_proj.weight"), c.DFF, c.DModel, RoleMatrix, 1)
	}
	l.matrix(layerName(i, "mlp.up_proj.weight"), c.DFF, c.DModel, RoleMatrix, 1)
	l.matrix(layerName(i, "mlp.down_proj.weight"), c.DModel, c.DFF, RoleMatrix, residual)
	l.outputNorms(mlp)
}

func (l *paramList) inputNorm(m module) {
	if l.pos.Input {
		l.gain(m.input, l.c.DModel, RoleInputGain)
	}
}

func (l *paramList) outputNorms(m module) {
	if l.pos.Output {
		l.gain(m.output, l.c.DModel, RoleOutputGain)
	}
	if l.pos.Sum {
		l.gain(m.sum, l.c.DModel, RoleSumGain)
	}
}

func (l *paramList) qkNorm(i, qWidth, kvWidth int) {
	switch l.c.QKNorm {
	case QKNormRMS, QKNormLayerNorm:
		qWidth, kvWidth = l.c.HeadDim, l.c.HeadDim
	case QKNormRMSFull:
	case QKNormL2:
		if l.c.QKScale == GainFrozen {
			return
		}
		l.list = append(l.list, Param{Name: layerName(i, "self_attn.qk_scale"), Shape: graph.Shape{1}, Role: RoleQKScale, Mean: l.c.initialScale()})
		return
	default:
		return
	}
	l.gain(layerName(i, "self_attn.q_norm.weight"), qWidth, RoleQKGain)
	l.gain(layerName(i, "self_attn.k_norm.weight"), kvWidth, RoleQKGain)
}

func (l *paramList) gain(name string, n int, role Role) {
	if l.c.Gain == GainFrozen {
		return
	}
	mean := 1.0
	if role == RoleOutputGain {
		mean, _ = l.c.outputGain() // of a valid config
	}
	l.list = append(l.list, Param{Name: name, Shape: graph.Shape{n}, Role: role, Mean: mean})
}

func (l *paramList) matrix(name string, out, in int, role Role, scale float64) {
	l.list = append(l.list, Param{Name: name, Shape: graph.Shape{out, in}, Role: role, Std: scale * l.std(out, in)})
}

func (l *paramList) invSqrt2N() float64 { return 1 / math.Sqrt(2*float64(l.c.NLayers)) }

// std is the standard deviation of a matrix [out, in].
func (l *paramList) std(out, in int) float64 {
	switch name, a, _ := l.c.initKind(); name {
	case InitNormal002:
		return 0.02
	case InitXavier:
		return math.Sqrt(2 / float64(in+out))
	case InitHe:
		return math.Sqrt(2 / float64(in))
	case InitLeCun:
		return math.Sqrt(1 / float64(in))
	default:
		return math.Sqrt(a / float64(l.c.DModel))
	}
}

func (l *paramList) embeddingStd() float64 {
	switch l.c.Init {
	case InitXavier, InitHe, InitLeCun:
		return math.Sqrt(1 / float64(l.c.DModel))
	}
	return l.std(l.c.VocabSize, l.c.DModel)
}

// NumParams is the number of parameters' elements; a tied head is counted once.
func (c Config) NumParams() int {
	n := 0
	for _, p := range c.Params() {
		n += p.Shape.Elems()
	}
	return n
}
