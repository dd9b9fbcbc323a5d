package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

const unit = 0x1p-24 // half an ulp, relative

var (
	inf    = float32(math.Inf(1))
	negInf = float32(math.Inf(-1))
	nan    = float32(math.NaN())
)

// lengths are around the widths of vectors and of blocks of them.
var lengths = []int{0, 1, 2, 3, 5, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 37, 63, 64, 65, 97, 131, 1031}

// bothKernels runs f with the plain kernels and those of this processor.
func bothKernels(t *testing.T, f func(t *testing.T, k kernels)) {
	t.Run("plain", func(t *testing.T) { f(t, plain) })
	t.Run("active", func(t *testing.T) { f(t, active) })
}

var random = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))

func normals(n int, scale float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(random.NormFloat64() * scale)
	}
	return x
}

// guarded is a copy of x, at odd addresses, between guard words that must be there at the end.
func guarded(t *testing.T, x []float32) []float32 {
	const word = 12345.5
	before := 1 + random.IntN(9)
	all := make([]float32, before+len(x)+9)
	for i := range all {
		all[i] = word
	}
	copy(all[before:], x)
	t.Cleanup(func() {
		for i, v := range all {
			if i < before || i >= before+len(x) {
				require.Equal(t, float32(word), v, "a guard word %d from the start", i-before)
			}
		}
	})
	return all[before : before+len(x) : before+len(x)]
}

func near(t *testing.T, want float64, got float32, bound float64, msg ...any) {
	t.Helper()
	switch {
	case math.IsNaN(want):
		require.True(t, got != got, msg...)
	case math.IsInf(want, 0) || math.Abs(want) > math.MaxFloat32:
		require.Equal(t, float32(want), got, msg...)
	default:
		require.LessOrEqual(t, math.Abs(want-float64(got)), bound, msg...)
	}
}

func ulp(x float64) float64 {
	if math.Abs(x) < 0x1p-126 {
		return 0x1p-149
	}
	return math.Ldexp(1, math.Ilogb(x)-23)
}

// The exponential over all magnitudes, at every 997th float.
func TestExpWithinOneUlp(t *testing.T) {
	bothKernels(t, func(t *testing.T, k kernels) {
		x, y := make([]float32, 1<<12), make([]float32, 1<<12)
		for bits := uint64(random.IntN(997)); bits < 1<<32; {
			n := 0
			for ; n < len(x) && bits < 1<<32; bits += 997 {
				if v := math.Float32frombits(uint32(bits)); v > -105 && v < 90 && (v > 1e-9 || v < -1e-9) {
					x[n] = v
					n++
				}
			}
			k.expScaleSum(y[:n], x[:n], 1, 0)
			for i, v := range x[:n] {
				if want := math.Exp(float64(v)); !(math.Abs(float64(y[i])-want) <= ulp(want)) && float32(want) <= math.MaxFloat32 || (y[i] == inf) != (float32(want) == inf) {
					t.Fatalf("exp(%v) = %v, want %v", v, y[i], want)
				}
			}
		}
	})
}

// Exp against float64, over its whole range: the error is stated in units in the last place.
func TestExp(t *testing.T) {
	for x := float32(-87); x < 88.7; x += 0.00317 {
		want := math.Exp(float64(x))
		require.LessOrEqual(t, math.Abs(float64(Exp(x))-want), 0.63*ulp(want), "exp(%v)", x)
	}
	require.True(t, math.IsInf(float64(Exp(88.8)), 1))
	require.True(t, math.IsInf(float64(Exp(float32(math.Inf(1)))), 1))
	require.Zero(t, Exp(float32(math.Inf(-1))))
	require.Zero(t, Exp(-104))
	require.Greater(t, Exp(-103), float32(0))
	require.True(t, math.IsNaN(float64(Exp(float32(math.NaN())))))
}

func TestExpScaleSum(t *testing.T) {
	bothKernels(t, func(t *testing.T, k kernels) {
		for _, n := range lengths {
			for _, inPlace := range []bool{false, true} {
				x := guarded(t, normals(n, 20))
				dst := guarded(t, normals(n, 1))
				old := append([]float32{}, x...)
				if inPlace {
					dst = x
				}
				scale, shift := float32(random.Float64()), float32(random.NormFloat64())
				sum, want := k.expScaleSum(dst, x, scale, shift), 0.0
				for i, v := range old {
					e := math.Exp(float64(fma(v, scale, -shift)))
					near(t, e, dst[i], ulp(e))
					want += e
				}
				near(t, want, sum, (float64(n)+2)*unit*want)
			}
		}
		for _, c := range []struct{ x, want float32 }{
			{inf, inf}, {negInf, 0}, {-104, 0}, {-1e30, 0}, {89, inf}, {1e30, inf}, {0, 1}, {float32(math.Copysign(0, -1)), 1}, {nan, nan}, {math.Float32frombits(0x7fc00155), nan}, {math.Float32frombits(0xffffffff), nan}, {1e-40, 1},
		} {
			for at := range 19 {
				x := make([]float32, 19)
				x[at] = c.x
				sum := k.expScaleSum(x, x, 1, 0)
				near(t, float64(c.want), x[at], 0, "exp(%v)", c.x)
				near(t, 18+float64(c.want), sum, 0)
			}
		}
	})
}

func TestMax(t *testing.T) {
	bothKernels(t, func(t *testing.T, k kernels) {
		require.Equal(t, negInf, k.max(nil))
		for _, n := range lengths[1:] {
			x := guarded(t, normals(n, 1))
			for i := range x {
				x[i] -= 100 // below the zeros that a masked load gives
			}
			at := random.IntN(n)
			x[at] = -50
			require.Equal(t, float32(-50), k.max(x))
			for i := range x {
				if i != at {
					x[i] = nan
				}
			}
			require.Equal(t, float32(-50), k.max(x))
			x[at] = negInf
			require.Equal(t, negInf, k.max(x))
			x[at] = inf
			require.Equal(t, inf, k.max(x))
			x[at] = nan
			require.Equal(t, negInf, k.max(x))
		}
	})
}

func TestScaleAxpyDot(t *testing.T) {
	bothKernels(t, func(t *testing.T, k kernels) {
		for _, n := range lengths {
			for _, size := range []float64{1e-30, 1, 1e15} {
				x, y, dst := guarded(t, normals(n, size)), guarded(t, normals(n, 1)), guarded(t, normals(n, 1))
				a := float32(random.NormFloat64())
				k.scale(dst, x, a)
				old := append([]float32{}, y...)
				k.axpy(y, a, x)
				dot, mag := 0.0, 0.0
				for i, v := range x {
					require.Equal(t, a*v, dst[i])
					p := float64(a) * float64(v)
					near(t, float64(old[i])+p, y[i], 2*unit*(math.Abs(p)+math.Abs(float64(old[i]))))
					dot += float64(v) * float64(y[i])
					mag += math.Abs(float64(v) * float64(y[i]))
				}
				near(t, dot, k.dot(x, y), float64(n+1)*unit*mag)
				k.scale(x, x, a)
				require.Equal(t, dst, x)
			}
		}
		for at := range 41 {
			for _, v := range []float32{inf, negInf, nan} {
				x, y := make([]float32, 41), make([]float32, 41)
				for i := range y {
					y[i] = 1
				}
				x[at] = v
				near(t, float64(v), k.dot(x, y), 0)
				k.axpy(y, 2, x)
				near(t, float64(v), y[at], 0)
				k.scale(y, x, 0)
				require.True(t, y[at] != y[at], "0 times %v", v)
			}
		}
	})
}

func TestLogitGrad(t *testing.T) {
	bothKernels(t, func(t *testing.T, k kernels) {
		for _, n := range lengths {
			x, g := guarded(t, normals(n, 3)), guarded(t, normals(n, 1))
			oldX, oldG := append([]float32{}, x...), append([]float32{}, g...)
			scale, lse, delta := float32(random.Float64()), float32(random.NormFloat64()+3), float32(random.NormFloat64())
			sum := k.logitGrad(x, g, scale, lse, delta)
			want, mag := 0.0, 0.0
			for i, v := range oldX {
				p := math.Exp(float64(fma(v, scale, -lse)))
				near(t, p, x[i], ulp(p))
				d := p * (float64(oldG[i]) - float64(delta))
				off := p * (math.Abs(float64(oldG[i])) + math.Abs(float64(delta)))
				near(t, d*float64(scale), g[i], 5*unit*off*float64(scale))
				want += d * float64(v)
				mag += off * math.Abs(float64(v))
			}
			near(t, want, sum, float64(n+5)*unit*mag)
		}
		for at := range 19 {
			for _, v := range []float32{inf, nan} {
				x, g := make([]float32, 19), make([]float32, 19)
				g[at] = v
				sum := k.logitGrad(x, g, 1, 2, 0)
				near(t, float64(v), g[at], 0)
				require.True(t, sum != sum, "0 times %v", v)
				g[at], x[at] = 1, v
				sum = k.logitGrad(x, g, 1, 2, 0)
				near(t, float64(v), x[at], 0)
				near(t, float64(v), g[at], 0)
				near(t, float64(v), sum, 0)
			}
		}
	})
}

func BenchmarkVector(b *testing.B) {
	const n = 1024
	x, y, z := normals(n, 1), normals(n, 1), make([]float32, n)
	for _, set := range []struct {
		name string
		k    kernels
	}{{"plain", plain}, {"active", active}} {
		for _, c := range []struct {
			name string
			f    func()
		}{
			{"Max", func() { set.k.max(x) }},
			{"ExpScaleSum", func() { set.k.expScaleSum(z, x, 1, 1) }},
			{"Scale", func() { set.k.scale(z, x, 1) }},
			{"Axpy", func() { set.k.axpy(z, 1e-9, x) }},
			{"Dot", func() { set.k.dot(x, y) }},
			{"LogitGrad", func() { copy(z, x); set.k.logitGrad(z, y, 1, 9, 0) }},
		} {
			b.Run(fmt.Sprintf("%s/%s", c.name, set.name), func(b *testing.B) {
				for b.Loop() {
					c.f()
				}
				b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gelem/s")
			})
		}
	}
}
