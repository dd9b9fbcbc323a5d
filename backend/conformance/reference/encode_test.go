package reference_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/graph"
)

// Every 16-bit pattern survives decoding and encoding, quiet NaNs with their payload.
func TestSixteenBitFormatsRoundTrip(t *testing.T) {
	for _, d := range []graph.DType{graph.BF16, graph.F16} {
		x, back := make([]float64, 1), make([]byte, 2)
		for bits := range 1 << 16 {
			src := binary.LittleEndian.AppendUint16(nil, uint16(bits))
			reference.Decode(x, src, d)
			if math.IsNaN(x[0]) {
				quiet := uint16(0x40)
				if d == graph.F16 {
					quiet = 0x200
				}
				binary.LittleEndian.PutUint16(src, uint16(bits)|quiet)
			}
			reference.Encode(back, x, d)
			if string(src) != string(back) {
				t.Fatalf("%s %04x: %g comes back as %04x", d, bits, x[0], binary.LittleEndian.Uint16(back))
			}
		}
	}
	x := make([]float64, 3)
	reference.Decode(x, []byte{0x00, 0x3C, 0x01, 0x00, 0xFF, 0xFB}, graph.F16)
	require.Equal(t, []float64{1, 0x1p-24, -65504}, x)
}
