package simd

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// elementwise is a kernel with what it should give for one element: values and how far it may be from each.
type elementwise struct {
	name    string
	in, out int
	run     func(k kernels, out, in [][]float32)
	want    func(in []float64) (v, bound []float64)
}

const least = 0x1p-149

func one(v, bound float64) (_, _ []float64) { return []float64{v}, []float64{bound} }

func cdf(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

var (
	testLimit = float32(2.5)
	// testAdamW: clip, beta1, 1-beta1, beta2, 1-beta2, rate, 1/bias2, eps, keep.
	testAdamW = [9]float32{0.75, 0.9, 0.1, 0.95, 0.05, 1e-2, 20, 1e-8, 0.99}
)

var elementwises = []elementwise{
	{"SwiGLU", 2, 1, func(k kernels, out, in [][]float32) { k.swiGLU(out[0], in[0], in[1]) }, func(in []float64) (_, _ []float64) {
		v := in[0] / (1 + math.Exp(-in[0])) * in[1]
		return one(v, 8*unit*math.Abs(v)+least*(1+math.Abs(in[1])))
	}},
	{"SwiGLUGrad", 3, 2, func(k kernels, out, in [][]float32) { k.swiGLUGrad(out[0], out[1], in[0], in[1], in[2]) }, func(in []float64) (_, _ []float64) {
		s, c := 1/(1+math.Exp(-in[1])), 1/(1+math.Exp(in[1]))
		v := []float64{in[0] * in[2] * s * (1 + in[1]*c), in[0] * in[1] * s}
		mag := math.Abs(in[0]*in[2]) * (1 + math.Abs(in[1]))
		return v, []float64{12*unit*mag*s + least*(2+math.Abs(in[1])+mag), 8*unit*math.Abs(v[1]) + least*(1+math.Abs(in[0])*(1+math.Abs(in[1])))}
	}},
	{"GELU", 1, 1, func(k kernels, out, in [][]float32) { k.gelu(out[0], in[0]) }, func(in []float64) (_, _ []float64) {
		v, ulps := in[0]*cdf(in[0]), 10.0
		if in[0] > -0.5 {
			ulps = 4
		}
		return one(v, ulps*unit*math.Abs(v)+least*(1+math.Abs(in[0])))
	}},
	{"GELUGrad", 2, 1, func(k kernels, out, in [][]float32) { k.geluGrad(out[0], in[0], in[1]) }, func(in []float64) (_, _ []float64) {
		x := in[1]
		a, b := cdf(x), x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
		return one(in[0]*(a+b), 12*unit*math.Abs(in[0])*(a+math.Abs(b))+least*(1+math.Abs(in[0])*(1+math.Abs(x))))
	}},
	{"ReLU", 1, 1, func(k kernels, out, in [][]float32) { k.relu(out[0], in[0]) }, func(in []float64) (_, _ []float64) {
		return one(math.Max(0, in[0]), 0)
	}},
	{"ReLUGrad", 2, 1, func(k kernels, out, in [][]float32) { k.reluGrad(out[0], in[0], in[1]) }, func(in []float64) (_, _ []float64) {
		if in[1] > 0 {
			return one(in[0], 0)
		}
		return one(0, 0)
	}},
	{"SoftCap", 1, 1, func(k kernels, out, in [][]float32) { k.softCap(out[0], in[0], testLimit) }, func(in []float64) (_, _ []float64) {
		v := float64(testLimit) * math.Tanh(in[0]/float64(testLimit))
		return one(v, 8*unit*math.Abs(v)+4*least)
	}},
	{"SoftCapGrad", 2, 1, func(k kernels, out, in [][]float32) { k.softCapGrad(out[0], in[0], in[1], testLimit) }, func(in []float64) (_, _ []float64) {
		t := in[1] / float64(testLimit)
		return one(in[0]*(1-t*t), 4*unit*math.Abs(in[0])*(1+t*t)+least)
	}},
	{"SoftmaxGrad", 2, 1, func(k kernels, out, in [][]float32) { k.softmaxGrad(out[0], in[0], in[1], 0.5) }, func(in []float64) (_, _ []float64) {
		return one(in[1]*(in[0]-0.5), 2*unit*math.Abs(in[1])*(math.Abs(in[0])+0.5)+least)
	}},
	{"Add", 2, 1, func(k kernels, out, in [][]float32) { k.add(out[0], in[0], in[1]) }, func(in []float64) (_, _ []float64) {
		return one(in[0]+in[1], unit*math.Abs(in[0]+in[1]))
	}},
	{"ExpMul", 1, 1, func(k kernels, out, in [][]float32) { k.expMul(out[0], in[0], 0, 3) }, func(in []float64) (_, _ []float64) {
		return one(3*math.Exp(in[0]), 3*unit*3*math.Exp(in[0])+4*least)
	}},
	{"Normalize", 3, 1, func(k kernels, out, in [][]float32) { k.normalize(out[0], in[0], in[1], in[2], 0.25, 2) }, func(in []float64) (_, _ []float64) {
		h := (in[0] - 0.25) * 2 * in[1]
		return one(in[2]+h, 5*unit*(math.Abs(h)+math.Abs(in[2]))+least)
	}},
	{"NormGradApply", 4, 1, func(k kernels, out, in [][]float32) {
		k.normGradApply(out[0], in[0], in[1], in[2], in[3], 0.25, 2, 0.5, 0.75)
	},
		func(in []float64) (_, _ []float64) {
			h, u := (in[1]-0.25)*2, in[0]*in[2]
			mag := math.Abs(in[3]) + 2*(math.Abs(u)+0.5+math.Abs(h)*0.75)
			return one(in[3]+2*(u-0.5-h*0.75), 7*unit*mag+least)
		}},
	{"AdamW", 4, 3, func(k kernels, out, in [][]float32) {
		for i := range in[2] { // a second moment is not negative
			in[2][i] = float32(math.Abs(float64(in[2][i])))
		}
		copy(out[0], in[0])
		copy(out[1], in[1])
		copy(out[2], in[2])
		f := testAdamW
		k.adamW(out[0], out[1], out[2], in[3], f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8])
	}, func(in []float64) (_, _ []float64) {
		var f [9]float64
		for i, v := range testAdamW {
			f[i] = float64(v)
		}
		d := f[0] * in[3]
		m, v := f[1]*in[1]+f[2]*d, f[3]*in[2]+f[4]*d*d
		magM := math.Abs(f[1]*in[1]) + math.Abs(f[2]*d)
		den := math.Sqrt(v*f[6]) + f[7]
		p, step := in[0]*f[8], f[5]*m/den
		return []float64{p - step, m, v}, []float64{4*unit*math.Abs(p) + 12*unit*f[5]*magM/den + least, 3*unit*magM + least, 5*unit*v + 0x1p-126}
	}},
}

// tails are where functions saturate, vanish or overflow.
var tails = []float32{0, 1e-45, 1e-38, 1e-8, 1e-4, 0.3, 0.7, 1.56, 1.57, 4, 5.5, 9, 13, 14.9, 15.1, 16, 30, 80, 87, 88, 89, 95, 100, 103, 110, 150, 172, 173, 174, 200, 1e4}

func TestElementwise(t *testing.T) {
	for _, e := range elementwises {
		t.Run(e.name, func(t *testing.T) {
			bothKernels(t, func(t *testing.T, k kernels) {
				for _, n := range lengths {
					for round := range 3 {
						in, out := make([][]float32, e.in), make([][]float32, e.out)
						old := make([][]float32, e.in)
						for i := range in {
							in[i] = guarded(t, normals(n, []float64{1, 8, 0.1}[round]))
						}
						for i := range out {
							out[i] = guarded(t, make([]float32, n))
						}
						if round > 0 {
							for j := range n { // one operand at the tails
								in[j%e.in][j] = tails[(j/e.in)%len(tails)] * float32(1-2*(round%2))
							}
						}
						e.run(k, out, in)
						copy(old, in)
						for j := range n {
							args := make([]float64, e.in)
							for i := range in {
								args[i] = float64(old[i][j])
							}
							v, bound := e.want(args)
							for i := range v {
								near(t, v[i], out[i][j], bound[i], "%v of %v: %v, want %v", e.name, args, out[i][j], v[i])
							}
						}
					}
				}
			})
		})
	}
}

// What is not finite with the plain kernels is not with the others, whatever a NaN's bits are, and nothing else is.
func TestElementwiseSpecials(t *testing.T) {
	specials := []float32{inf, negInf, nan, -nan, math.Float32frombits(0x7fc00155), math.Float32frombits(0xffffffff), math.Float32frombits(0x7fc00001),
		math.MaxFloat32, -1e30, -1e4, 1e4, 1e30}
	const n = 29
	for _, e := range elementwises {
		for operand := range e.in {
			for at := 0; at < n; at += 7 {
				for _, s := range specials {
					in := make([][]float32, e.in)
					for i := range in {
						in[i] = normals(n, 1)
					}
					in[operand][at] = s
					twin, got := make([][]float32, e.out), make([][]float32, e.out)
					for i := range got {
						twin[i], got[i] = make([]float32, n), make([]float32, n)
					}
					e.run(plain, twin, in)
					e.run(active, got, in)
					for i := range got {
						for j, v := range twin[i] {
							finite := v-v == 0
							require.Equal(t, finite, got[i][j]-got[i][j] == 0, "%s: operand %d is %v: %v and %v", e.name, operand, s, v, got[i][j])
							if j == at && s != s && v != v {
								require.True(t, got[i][j] != got[i][j], "%s: operand %d is a NaN: %v", e.name, operand, got[i][j])
							}
						}
					}
				}
			}
		}
	}
}

// Every 16-bit float comes back from float32 as it was.
func TestHalfRoundTrip(t *testing.T) {
	all := make([]uint16, 1<<16+3)
	for i := range all {
		all[i] = uint16(i)
	}
	f, back := make([]float32, len(all)), make([]uint16, len(all))
	check := func(exponent uint16) {
		for i, h := range all {
			if f[i] != f[i] {
				require.Equal(t, exponent, back[i]&exponent)
				require.NotZero(t, back[i]&^exponent&0x7fff)
				continue
			}
			require.Equal(t, h, back[i])
		}
	}
	FromF16(f, all)
	ToF16(back, f)
	check(0x7c00)
	FromBF16(f, all)
	ToBF16(back, f)
	check(0x7f80)
}

// The casts of both kernels are the same bits, over float32 of all magnitudes.
func TestHalfCasts(t *testing.T) {
	x := make([]float32, 1<<20)
	for i := range x {
		x[i] = math.Float32frombits(random.Uint32())
	}
	for i, v := range []float32{0, 1 + 0x1p-8, 1 + 0x3p-8, 1 + 0x1p-11, 1 + 0x3p-11, 65504, 65519, 65520, 0x1p-14, 0x1.8p-15, 0x1p-24, 0x1.8p-25, 0x1p-25, inf, nan} {
		x[2*i], x[2*i+1] = v, -v
	}
	a, b := make([]uint16, len(x)), make([]uint16, len(x))
	plain.toBF16(a, x)
	active.toBF16(b, x)
	require.Equal(t, a, b)
	plain.toF16(a, x)
	active.toF16(b, x)
	require.Equal(t, a, b)
}
