//go:build cgo

package vulkan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
)

// readFloats reads a variable.
func readFloats(t *testing.T, s backend.Store, name string, n int) []float32 {
	t.Helper()
	raw := make([]byte, 4*n)
	require.NoError(t, s.Read(name, raw))
	f := make([]float32, n)
	for i := range f {
		f[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return f
}

// The loop does every FMA that it is said to: with whole numbers all is exact, so that one more or less in any sum is seen.
func TestPeakFMAComputes(t *testing.T) {
	for name, opts := range map[string]Options{
		"plain": {}, "floor": {FloorOnly: true}, "many groups": {tweak: func(d *DeviceInfo) { d.Limits.GroupCount[0] = 3 }},
	} {
		t.Run(name, func(t *testing.T) {
			b := openTest(t, opts)
			for _, c := range []struct {
				groups int
				push   fmaPush
			}{{1, fmaPush{0, 2, 1}}, {1, fmaPush{1, 2, 1}}, {3, fmaPush{1, -1, 5}}, {5, fmaPush{7, -1, 3}}, {2, fmaPush{100, 1, 2}}, {7, fmaPush{3, 0, 9}}} {
				p := fmaProgram(b.caps.threads() * c.groups)
				s := newStore(t, b, p)
				e, err := b.compile(p, s, b.capsNow(), lowerFMA(c.groups, c.push))
				require.NoError(t, err)
				seconds, err := run(e)
				require.NoError(t, err)
				require.GreaterOrEqual(t, seconds, 0.0)
				got := readFloats(t, s, "result", b.caps.threads()*c.groups)
				for i := range got {
					want := float32(0)
					for k := range fmaSums {
						sum := float32(i%b.caps.threads() + k)
						for range fmaUnroll * c.push.Rounds {
							sum = sum*c.push.X + c.push.Y
						}
						want += sum
					}
					require.Equal(t, want, got[i], "%+v, thread %d", c, i)
				}
				require.NoError(t, e.Close())
			}
		})
	}
}

// The triad writes every element of a, and nothing else.
func TestPeakTriadComputes(t *testing.T) {
	for name, opts := range map[string]Options{
		"plain": {}, "floor": {FloorOnly: true}, "many groups": {tweak: func(d *DeviceInfo) { d.Limits.GroupCount[0] = 3 }},
	} {
		t.Run(name, func(t *testing.T) {
			b := openTest(t, opts)
			for _, n := range []int{4, 8, 1020, 1024, 4 * 1023, 4 * 1024, 4*1024 + 4, 40 * 1024} {
				p := triadProgram(n)
				s := newStore(t, b, p)
				in := map[string][]float32{}
				for i, v := range []string{"a", "b", "c"} {
					for k := range n {
						in[v] = append(in[v], float32((k*(7+i)+i)%1001-500))
					}
					require.NoError(t, s.Write(v, floats(in[v]...)))
				}
				e, err := b.compile(p, s, b.capsNow(), lowerTriad(0.5))
				require.NoError(t, err)
				_, err = run(e)
				require.NoError(t, err)
				want := make([]float32, n)
				for k := range want {
					want[k] = in["b"][k] + 0.5*in["c"][k]
				}
				require.Equal(t, want, readFloats(t, s, "a", n), "%d elements", n)
				for _, v := range []string{"b", "c"} {
					require.Equal(t, in[v], readFloats(t, s, v, n))
				}
				require.NoError(t, e.Close())
			}
		})
	}
}

// What the loops count is what they do, and they leave no memory behind.
func TestPeakLoops(t *testing.T) {
	b := openTest(t, Options{})
	loops, err := b.NewPeakLoops()
	require.NoError(t, err)
	fma, err := loops.FMA()
	require.NoError(t, err)
	triad, err := loops.Triad()
	require.NoError(t, err)
	require.Positive(t, fma)
	require.Positive(t, triad)
	require.NoError(t, loops.Close())
	require.Empty(t, b.open)

	b.physical.Limits.TimestampNanos = 0
	_, err = b.NewPeakLoops()
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

// The triad takes smaller arrays where the device has little room, and an error where it has none.
func TestPeakTriadFits(t *testing.T) {
	for mib, want := range map[int64]float64{200: 32 << 20, 71: 16 << 20, 0: 0} {
		t.Run(fmt.Sprint(mib), func(t *testing.T) {
			b := openTest(t, Options{})
			l := peakLoops{b: b}
			for i := range b.physical.Heaps {
				b.physical.Heaps[i].Bytes = mib << 20
			}
			err := l.makeTriad(32 << 20)
			require.Equal(t, 3*want, l.bytes)
			if want == 0 {
				require.ErrorAs(t, err, new(*MemoryError))
			} else {
				require.NoError(t, err)
			}
			require.NoError(t, l.Close())
		})
	}
}
