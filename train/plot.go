package train

import (
	"bytes"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// PlotLoss draws the training loss, the validation loss and, if there is one, the floor over the steps, as a PNG.
func PlotLoss(title string, lines []Metrics, floor *Floor) (image []byte, err error) {
	defer func() {
		if p := recover(); p != nil { // gonum panics at numbers that it can't draw
			image, err = nil, fmt.Errorf("the plot can't be drawn: %v", p)
		}
	}()
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text = "step"
	p.Y.Label.Text = "loss (nats per token)"
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	var training, validation plotter.XYs
	for _, m := range lines {
		training = append(training, plotter.XY{X: float64(m.Step), Y: m.Loss})
		if m.Evaluated {
			validation = append(validation, plotter.XY{X: float64(m.Step), Y: m.ValLoss})
		}
	}
	if err := addLine(p, "training", drawable(training), color.RGBA{R: 140, G: 170, B: 210, A: 255}, 1); err != nil {
		return nil, err
	}
	validation = drawable(validation)
	if err := addLine(p, "validation", validation, color.RGBA{R: 200, G: 80, A: 255}, 1.5); err != nil {
		return nil, err
	}
	if err := addPoints(p, validation, color.RGBA{R: 200, G: 80, A: 255}); err != nil {
		return nil, err
	}
	if floor != nil && len(lines) > 0 {
		level := plotter.XYs{{X: float64(lines[0].Step), Y: floor.Realised}, {X: float64(lines[len(lines)-1].Step), Y: floor.Realised}}
		if err := addLine(p, "floor of the validation text", level, color.RGBA{G: 120, B: 60, A: 255}, 1); err != nil {
			return nil, err
		}
	}
	png, err := p.WriterTo(16*vg.Centimeter, 10*vg.Centimeter, "png")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	_, err = png.WriteTo(&out)
	return out.Bytes(), err
}

// mostLoss is far above any loss that is worth a look. With larger ones the axis runs out of digits.
const mostLoss = 1e9

// drawable leaves out what is not finite or too large to be drawn.
func drawable(points plotter.XYs) plotter.XYs {
	var kept plotter.XYs
	for _, q := range points {
		if math.Abs(q.Y) <= mostLoss {
			kept = append(kept, q)
		}
	}
	return kept
}

func addLine(p *plot.Plot, name string, points plotter.XYs, c color.Color, width float64) error {
	if len(points) == 0 {
		return nil
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = c, vg.Points(width)
	p.Add(line)
	p.Legend.Add(name, line)
	return nil
}

func addPoints(p *plot.Plot, points plotter.XYs, c color.Color) error {
	if len(points) == 0 {
		return nil
	}
	dots, err := plotter.NewScatter(points)
	if err != nil {
		return err
	}
	dots.Color, dots.Radius, dots.Shape = c, vg.Points(2), draw.CircleGlyph{}
	p.Add(dots)
	return nil
}

// Floor is the entropy of a source that is known exactly, which no model's loss can be under, in nats per token.
type Floor struct {
	Expected float64 // the source's entropy
	Realised float64 // the mean surprisal of the validation text under the source: what a perfect model's loss on it would be
}
