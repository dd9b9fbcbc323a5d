package graph

// SumSquaresParts is the number of partial sums that sum_squares writes for a tensor.
const SumSquaresParts = 64

// SumSquares writes the squares' sums of 64 consecutive chunks: partials[i] = sum of x² over the elements
// i*c .. min(n, (i+1)*c)-1, c = ceil(n/64); an empty chunk gives 0.
//
//	x (...), partials (64), often a view of one buffer for all tensors
func (b *Builder) SumSquares(x, dst *Value) *Value {
	wantFloat(OpSumSquares, x)
	p := b.out(OpSumSquares, dst, "sum_squares", F32, Shape{SumSquaresParts})
	b.node(OpSumSquares, []*Value{x}, []*Value{p}, nil)
	return p
}

// ClipNormAttr is the attribute of clip_norm.
type ClipNormAttr struct {
	MaxNorm float32 // 0: never clip
}

// ClipNorm gives the global norm, the root of the sum of the partials, and the factor that brings it under MaxNorm:
// 1 if norm + 1e-6 <= MaxNorm or MaxNorm is 0, else MaxNorm / (norm + 1e-6), and 0 for a norm that is not finite: [Builder.AdamW] leaves that step out.
//
// Where the gradients are those of the loss times a scale, the norm and the factor are divided by it: the norm is the true one, and the factor makes
// true gradients of the scaled ones.
//
//	partials (...), norm, factor (1), scale (1) or nil
func (b *Builder) ClipNorm(partials, scale *Value, maxNorm float32) (norm, factor *Value) {
	wantFloat(OpClipNorm, partials, scale)
	wantElems(OpClipNorm, 1, scale)
	norm, factor = b.Temp("norm", F32, 1), b.Temp("clip", F32, 1)
	b.node(OpClipNorm, []*Value{partials, scale}, []*Value{norm, factor}, ClipNormAttr{maxNorm})
	return norm, factor
}

// The elements of AdamW's hyper operand: what changes from step to step.
const (
	HyperLR          = iota // learning rate
	HyperBeta1              // decay of the first moment
	HyperBeta2              // decay of the second moment
	HyperEps                // added to the root of the second moment
	HyperWeightDecay        // multiplied by the learning rate and by AdamWAttr.Decay
	HyperBias1              // 1 - beta1^t
	HyperBias2              // 1 - beta2^t
	HyperLen
)

// AdamWAttr is the attribute of adamw.
type AdamWAttr struct {
	Decay  float32 // the tensor's multiplier of the weight decay: 1 for matrices, 0 for gains
	Tensor uint32  // with a key: the parameter's number, below 2^30, so that each has random bits of its own
	First  int     // with a key: the number in the tensor of element 0, a multiple of 8, where p is a part of it
}

// KeyLen is the number of elements of AdamW's key operand: the lower and the upper half of a seed, and those of a stream, of package rng.
const KeyLen = 4

// AdamW updates a parameter and its moments in place (Loshchilov & Hutter 2019, decoupled decay):
//
//	g' = clip g
//	p  = p (1 - lr decay weight_decay)
//	m  = beta1 m + (1 - beta1) g'
//	v  = beta2 v + (1 - beta2) g'²
//	p  = p - lr (m / bias1) / (sqrt(v / bias2) + eps)
//
// Where clip is 0 it leaves p, m and v as they are.
//
// With a key, p is bf16 and rounded stochastically: of the two numbers beside the float32 result it becomes the one away from zero with
// the probability that makes the mean exact. That is, 16 random bits are added to the float32 bits, of which the upper half is then kept. The bits of element i are
// the lower (i even) or upper half of word Tensor 2^34 + (First+i)/2 of the key's stream, so that they are the same on all devices.
//
//	p, m, v, g of one size; hyper (HyperLen); clip (1); key (KeyLen) i32, new in each step, or nil
func (b *Builder) AdamW(p, m, v, g, hyper, clip, key *Value, attr AdamWAttr) {
	wantFloat(OpAdamW, p, m, v, g, hyper, clip)
	if key != nil && (key.dtype != I32 || key.Elems() != KeyLen || p.dtype != BF16) {
		misuse("%s: key %q is %s%v and %q %s, want i32[%d] and bf16", OpAdamW, key.name, key.dtype, key.shape, p.name, p.dtype, KeyLen)
	}
	wantElems(OpAdamW, p.Elems(), m, v, g)
	wantElems(OpAdamW, HyperLen, hyper)
	wantElems(OpAdamW, 1, clip)
	b.node(OpAdamW, []*Value{p, m, v, g, hyper, clip, key}, []*Value{p, m, v}, attr)
}
