package bench

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/cpu"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/rng"
)

func TestMatMuls(t *testing.T) {
	dev, err := cpu.New(cpu.Options{Threads: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	o := MatMulOptions{Sizes: []Dims{{64, 64, 64}, {3, 70, 129}}, Orders: MatMulOrders(), Precisions: []graph.DType{graph.F32, graph.BF16}, Repeats: 3}
	r, err := MatMuls(context.Background(), dev, o)
	require.NoError(t, err)
	require.Len(t, r.Products, 12)
	require.Positive(t, r.Peak.GFLOPs)
	for _, p := range r.Products {
		require.Positive(t, p.MsMin)
		require.LessOrEqual(t, p.MsMin, p.Ms)
		require.InEpsilon(t, 2*float64(p.M*p.N*p.K)/1e6/p.Ms, p.GFLOPs, 1e-9)
		require.InEpsilon(t, p.GFLOPs/r.Peak.GFLOPs, p.OfPeak, 1e-9)
	}
	require.Equal(t, []any{"TN", 3, 70, 129, "bf16"}, []any{r.Products[11].Order, r.Products[11].M, r.Products[11].N, r.Products[11].K, r.Products[11].Precision})

	ctx, stop := context.WithCancel(context.Background())
	stop()
	_, err = MatMuls(ctx, dev, o)
	require.ErrorIs(t, err, context.Canceled)
	o.Orders = []string{"TT"}
	_, err = MatMuls(context.Background(), dev, o)
	require.ErrorContains(t, err, "use NN, NT or TN")
	o.Repeats = 0
	_, err = MatMuls(context.Background(), dev, o)
	require.ErrorContains(t, err, "at least 1")
}

// The numbers have both signs, and lie between 1 and 2.
func TestFillOnes(t *testing.T) {
	widen := map[graph.DType]func(raw []byte) float32{
		graph.F32:  func(raw []byte) float32 { return math.Float32frombits(binary.NativeEndian.Uint32(raw)) },
		graph.BF16: func(raw []byte) float32 { return math.Float32frombits(uint32(binary.NativeEndian.Uint16(raw)) << 16) },
		graph.F16: func(raw []byte) float32 { // exponents of 0 alone
			h := uint32(binary.NativeEndian.Uint16(raw))
			require.Equal(t, uint32(15), h>>10&31)
			return math.Float32frombits(h>>15<<31 | 127<<23 | h&0x3ff<<13)
		},
	}
	for format, value := range widen {
		part := make([]byte, 4096)
		fillOnes(part, format, rng.New(1, "test"))
		negative, most := 0, float32(0)
		for i := 0; i < len(part); i += format.Size() {
			v := value(part[i:])
			if v < 0 {
				negative++
				v = -v
			}
			require.True(t, v >= 1 && v < 2, "%s %g", format, v)
			most = max(most, v)
		}
		count := len(part) / format.Size()
		require.InDelta(t, count/2, negative, float64(count)/8)
		require.Greater(t, most, float32(1.9))
	}
}
