package train

import (
	"bytes"
	"image/png"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlotLossIsAnImageOfWhatItIsGiven(t *testing.T) {
	var lines []Metrics
	draw := func(floor *Floor) []byte {
		data, err := PlotLoss("run", lines, floor)
		require.NoError(t, err)
		img, err := png.Decode(bytes.NewReader(data))
		require.NoError(t, err)
		require.Greater(t, img.Bounds().Dx(), img.Bounds().Dy())
		return data
	}
	empty := draw(nil)
	for i := 1; i <= 50; i++ {
		lines = append(lines, Metrics{Step: i, Loss: 6 / math.Sqrt(float64(i))})
	}
	training := draw(nil)
	require.NotEqual(t, empty, training)
	lines[49].Evaluated, lines[49].ValLoss = true, 1
	validated := draw(nil)
	require.NotEqual(t, training, validated)
	require.NotEqual(t, validated, draw(&Floor{Expected: 0.9, Realised: 0.8}))
	lines[49].Loss, lines[49].ValLoss = math.NaN(), math.Inf(1)
	draw(nil)
	for _, loss := range []float64{1e9, 1e18, 1e37, 1e300, math.MaxFloat64, -1e300} {
		lines = []Metrics{{Step: 1, Loss: loss, Evaluated: true, ValLoss: loss}}
		draw(nil)
		lines = append(lines, Metrics{Step: 2, Loss: 4}, Metrics{Step: 3, Loss: loss})
		draw(&Floor{Realised: 0.8})
	}
}
