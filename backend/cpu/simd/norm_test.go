package simd

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRowSums(t *testing.T) {
	bothKernels(t, func(t *testing.T, k kernels) {
		for _, n := range lengths {
			x, dy, gain, sums := guarded(t, normals(n, 2)), guarded(t, normals(n, 1)), guarded(t, normals(n, 1)), guarded(t, normals(n, 1))
			mean, r := float32(0.3), float32(0.7)
			old := append([]float32{}, sums...)
			su, sux := k.normGradSums(sums, dy, x, gain, mean, r)
			var sum, mag, squares, e, u, absU, ux, absUX float64
			for i := range x {
				d, h, v := float64(x[i])-float64(mean), (float64(x[i])-float64(mean))*float64(r), float64(dy[i])*float64(gain[i])
				m := (math.Abs(float64(x[i])) + float64(mean)) * float64(r)
				near(t, float64(old[i])+float64(dy[i])*h, sums[i], 4*unit*(math.Abs(float64(old[i]))+math.Abs(float64(dy[i]))*m))
				sum, mag = sum+float64(x[i]), mag+math.Abs(float64(x[i]))
				squares += d * d
				u, absU = u+v, absU+math.Abs(v)
				ux, absUX = ux+v*h, absUX+math.Abs(v)*m
				e += math.Exp(float64(x[i]) - float64(mean))
			}
			terms := float64(n + 4)
			near(t, sum, k.sum(x), terms*unit*mag)
			near(t, squares, k.centredSquares(x, mean), 2*terms*unit*squares)
			near(t, u, su, terms*unit*absU)
			near(t, ux, sux, terms*unit*absUX)
			near(t, e, k.expSum(x, mean), (terms+8)*unit*e)
		}
		for at := range 41 {
			for _, v := range []float32{inf, nan} {
				x, ones := make([]float32, 41), make([]float32, 41)
				for i := range ones {
					ones[i] = 1
				}
				x[at] = v
				near(t, float64(v), k.sum(x), 0)
				near(t, float64(v), k.centredSquares(x, 0), 0)
				near(t, float64(v), k.expSum(x, 0), 0)
				_, sux := k.normGradSums(make([]float32, 41), ones, x, ones, 0, 1)
				near(t, float64(v), sux, 0)
				su, _ := k.normGradSums(make([]float32, 41), x, ones, ones, 0, 1)
				near(t, float64(v), su, 0)
			}
		}
	})
}

func TestRotate(t *testing.T) {
	bothKernels(t, func(t *testing.T, k kernels) {
		for _, half := range []int{1, 2, 5, 7, 8, 9, 16, 20, 32, 64} {
			n := 2 * half
			x, gain, table, y := guarded(t, normals(n, 1)), guarded(t, normals(n, 1)), guarded(t, normals(n, 1)), guarded(t, normals(n, 1))
			mean, r, sign := float32(0.3), float32(0.7), float32(-1)
			k.rotate(y, x, gain, table, mean, r, sign)
			at := func(i int) (h, mag float64) {
				f := float64(r) * float64(gain[i])
				return (float64(x[i]) - float64(mean)) * f, (math.Abs(float64(x[i])) + float64(mean)) * math.Abs(f)
			}
			for i := range half {
				a, magA := at(i)
				b, magB := at(i + half)
				cos, sin := float64(table[i]), float64(sign)*float64(table[i+half])
				near(t, a*cos-b*sin, y[i], 5*unit*(magA*math.Abs(cos)+magB*math.Abs(sin)))
				near(t, b*cos+a*sin, y[i+half], 5*unit*(magB*math.Abs(cos)+magA*math.Abs(sin)))
			}
			inPlace := append([]float32{}, x...)
			k.rotate(inPlace, inPlace, gain, table, mean, r, sign)
			require.Equal(t, y, inPlace)
		}
	})
	odd := 3
	require.PanicsWithValue(t, "simd: rotation of an odd number of elements", func() { Rotate(make([]float32, odd), nil, nil, nil, 0, 1, 1) })
}
