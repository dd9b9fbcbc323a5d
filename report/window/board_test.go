package window

import (
	"image"
	"image/color"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/internal/chart"
	"github.com/vktrain/vktrain/train"
)

// diagnosis is of a made-up model whose variance doubles with each layer, and whose gradients shrink by ten.
func diagnosis(layers int, scale float64) *train.Diagnosis {
	d := &train.Diagnosis{Embedding: train.Stream{Variance: train.Number(scale)}}
	for i := range layers {
		var l train.LayerDiagnosis
		l.Attention.Variance = train.Number(scale * math.Exp2(float64(i)+0.5))
		l.MLP.Variance = train.Number(scale * math.Exp2(float64(i)+1))
		l.GradNorm = train.Number(scale * math.Pow(10, -float64(i)))
		d.Layers = append(d.Layers, l)
	}
	return d
}

// filled is a board of so many steps, every tenth of which is diagnosed and every fiftieth evaluated.
func filled(steps, layers int) *Board {
	b := NewBoard("made-up", steps)
	for s := 1; s <= steps; s++ {
		m := train.Metrics{Step: s, Loss: 1 + 6*math.Exp(-float64(s)/100), TokensPerSec: 1234}
		if s%50 == 0 {
			m.Evaluated, m.ValLoss, m.ValFloor = true, m.Loss+0.1, 0.75
		}
		if s%10 == 1 {
			m.Diagnosis = diagnosis(layers, 1+float64(s)/100)
		}
		b.Add(m)
	}
	return b
}

func TestBoardKeepsWhatIsShown(t *testing.T) {
	b := filled(200, 3)
	p, version := b.copy()
	require.Equal(t, 200, version)
	require.Len(t, p.training.kept, 200)
	require.Equal(t, []point{{50, p.training.kept[49].y + 0.1}}, p.validation.kept[:1])
	require.Equal(t, 1, p.first.step)
	require.Equal(t, 191, p.newer.step)
	require.InDeltaSlice(t, []float64{1.01, 1.01 * math.Sqrt2, 2.02, 2.02 * math.Sqrt2, 4.04, 4.04 * math.Sqrt2, 8.08}, p.first.variance, 1e-9,
		"embedding, then attention and MLP of each layer")
	require.Len(t, p.gradients.kept, 20)
	require.InDeltaSlice(t, []float64{1.11, 0.111, 0.0111}, p.gradients.kept[1].norms, 1e-9)
	require.Equal(t, "made-up    step 200 of 200    loss 1.8120    validation 1.9120 (floor 0.7500)    1234 tokens/s", p.headline())
	require.Nil(t, p.last.Diagnosis)

	b.setPaused(true)
	b.Say("picture %d", 1)
	now, _ := b.copy()
	require.Equal(t, "paused", now.state())
	require.Equal(t, "picture 1", now.note)
	require.Equal(t, "training", p.state(), "a copy stays as it was")
	b.end()
	now, _ = b.copy()
	require.Equal(t, "over", now.state())
}

// However long a run is, what is kept of it has an end, is even, and begins with the first.
func TestThinned(t *testing.T) {
	var s thinned[int]
	for i := range 100_000 {
		s.add(i, 64)
		require.LessOrEqual(t, len(s.kept), 64)
		require.Zero(t, s.kept[0])
	}
	for i, x := range s.kept {
		require.Equal(t, i*s.every, x)
	}
	require.Greater(t, s.kept[len(s.kept)-1], 100_000-2*s.every)
}

// inked counts the pixels of a part in a style's colour, vivid those in any that is far from grey.
func inked(img *image.RGBA, in image.Rectangle, style int) (inked, vivid int) {
	ink := color.RGBAModel.Convert(chart.StyleOf(style).Color).(color.RGBA)
	for y := in.Min.Y; y < in.Max.Y; y++ {
		for x := in.Min.X; x < in.Max.X; x++ {
			c := img.RGBAAt(x, y)
			if c == ink {
				inked++
			}
			if max(c.R, c.G, c.B)-min(c.R, c.G, c.B) > 40 {
				vivid++
			}
		}
	}
	return inked, vivid
}

// The curves are where they belong: loss left above, variances right above, the map below.
func TestDraw(t *testing.T) {
	const w, h = 1200, 800
	left, right, below := image.Rect(0, 0, w/2, h/2), image.Rect(6*w/10, 0, w, h/2), image.Rect(0, 65*h/100, w, h)
	img, empty := filled(300, 4).Draw(w, h, 96), NewBoard("made-up", 300).Draw(w, h, 96)
	require.Equal(t, image.Rect(0, 0, w, h), img.Bounds())
	validation, curves := inked(img, left, 1)
	require.Greater(t, validation, 50)
	_, none := inked(empty, left, 1)
	require.Greater(t, curves-none, validation+200, "and the training loss, which is thin")
	first, _ := inked(img, right, 5)
	newest, _ := inked(img, right, 0)
	validation, _ = inked(img, right, 1)
	require.Greater(t, first, 50)
	require.Greater(t, newest, 50)
	require.Zero(t, validation)
	_, cells := inked(img, below, 0)
	_, none = inked(empty, below, 0)
	require.Greater(t, cells, w*h/10)
	require.Zero(t, none)
}

// Numbers that can't be drawn, models of one layer, and windows too small for anything, are no reason to fail.
func TestDrawWhateverComes(t *testing.T) {
	odd := NewBoard("odd", 3)
	inf, nan := math.Inf(1), math.NaN()
	d := diagnosis(1, nan)
	odd.Add(train.Metrics{Step: 1, Loss: nan, Diagnosis: d})
	odd.Add(train.Metrics{Step: 2, Loss: inf, Evaluated: true, ValLoss: 1e300, Diagnosis: diagnosis(1, 0)})
	flat := NewBoard("flat", 1)
	flat.Add(train.Metrics{Step: 1, Loss: 1, Diagnosis: diagnosis(1, 1)})
	for _, b := range []*Board{odd, flat, filled(3000, 2), NewBoard("", 0)} {
		for _, size := range []image.Point{{1, 1}, {7, 300}, {300, 7}, {160, 120}, {1900, 1100}} {
			require.Equal(t, size, b.Draw(size.X, size.Y, 96).Bounds().Size())
		}
		require.NotNil(t, b.Draw(800, 600, 192))
	}
}
