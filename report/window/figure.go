package window

import (
	"fmt"
	"image"
	"image/color"
	"math"

	weight "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/vktrain/vktrain/internal/chart"
)

// Lines of help. The first ends with what closing the window does.
const (
	keys     = "Space: pause or continue     S: one step     P: save this picture     C: save a checkpoint     closing the window "
	keysOver = "P: save this picture"
)

// Draw gives a picture of the board, of so many pixels, with dpi of them an inch of text and lines.
func (b *Board) Draw(width, height int, dpi float64) *image.RGBA {
	p, _ := b.copy()
	return p.draw(width, height, dpi)
}

// leastInches are the width and height in which the words and axes have room. A smaller picture is a smaller copy of one so large.
var leastInches = [2]float64{7.5, 5.2}

// draw has the loss and the variances side by side above the gradients.
func (p *picture) draw(width, height int, dpi float64) *image.RGBA {
	dpi = max(1, math.Floor(min(dpi, float64(width)/leastInches[0], float64(height)/leastInches[1])))
	canvas := vgimg.NewWith(vgimg.UseImage(image.NewRGBA(image.Rect(0, 0, width, height))), vgimg.UseDPI(int(dpi)))
	all := draw.New(canvas)
	line := vg.Points(16)
	if inner := draw.Crop(all, 0, 0, line, -2*line); inner.Max.Y-inner.Min.Y > 8*line && inner.Max.X-inner.Min.X > 8*line { // room for axes
		w, h := inner.Max.X-inner.Min.X, inner.Max.Y-inner.Min.Y
		p.part(draw.Crop(inner, 0, -0.45*w, 0.4*h, 0), p.losses())
		p.part(draw.Crop(inner, 0.55*w, 0, 0.4*h, 0), p.variances())
		p.part(draw.Crop(inner, 0, 0, 0, -0.6*h), p.gradientMap())
	}
	p.words(all, line)
	return canvas.Image().(*image.RGBA)
}

var (
	black = color.Gray{30}
	grey  = color.Gray{110}
	red   = color.RGBA{R: 190, G: 40, B: 30, A: 255}
)

func textStyle(size float64, c color.Color) text.Style {
	return text.Style{Color: c, Font: font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, vg.Points(size)), Handler: plot.DefaultTextHandler}
}

// part draws a figure, or says in its place why there is none.
func (p *picture) part(c draw.Canvas, f chart.Figure) {
	words := "no diagnosis yet"
	if len(f.Panels) > 0 {
		err := f.Draw(c)
		if err == nil {
			return
		}
		words = err.Error()
	}
	title := textStyle(12, black)
	title.Font.Weight = weight.WeightBold
	c.FillText(title, vg.Point{X: c.Min.X + 10, Y: c.Max.Y - 17}, f.Title)
	style := textStyle(10, grey)
	style.XAlign = text.XCenter
	c.FillText(style, c.Center(), words)
}

// words writes the lines above and below the figures.
func (p *picture) words(c draw.Canvas, line vg.Length) {
	left, right := c.Min.X+10, c.Max.X-10
	state := textStyle(10, grey)
	if p.paused {
		state = textStyle(10, red)
	}
	state.XAlign = text.XRight
	c.FillText(state, vg.Point{X: right, Y: c.Max.Y - line}, p.state())
	help := keys + p.closing
	if p.over {
		help = keysOver
	}
	room := right - left
	write(c, textStyle(10, black), left, c.Max.Y-line, room-state.Width(p.state())-10, p.headline())
	write(c, textStyle(9, grey), left, c.Max.Y-2*line+2, room, p.note)
	write(c, textStyle(9, grey), left, c.Min.Y+5, room, help)
}

// write writes a line, smaller where there is no room for it.
func write(c draw.Canvas, style text.Style, x, y, room vg.Length, words string) {
	if w := style.Width(words); w > room {
		style.Font.Size *= max(room/w, 0.1)
	}
	c.FillText(style, vg.Point{X: x, Y: y}, words)
}

func (p *picture) losses() chart.Figure {
	training := lineOf("training", 0, p.training.kept)
	training.Style.Thin = true
	lines := []chart.Line{training}
	if p.evaluated {
		validation := lineOf("validation", 1, p.validation.kept)
		validation.Points = len(validation.X) < 100
		lines = append(lines, validation)
	}
	panel := chart.Panel{X: chart.Axis{Label: "step", Whole: true}, Y: chart.Axis{Label: "loss (nats per token)"}, Lines: lines}
	if p.floor > 0 {
		panel.Levels = []chart.Level{{Name: "floor: no model can be lower", At: p.floor}}
	}
	return chart.Figure{Title: "Loss", Panels: []chart.Panel{panel}}
}

func lineOf(name string, style int, points []point) chart.Line {
	l := chart.Line{Name: name, Style: chart.StyleOf(style)}
	for _, q := range points {
		l.X, l.Y = append(l.X, q.x), append(l.Y, q.y)
	}
	return l
}

// variances are the first and the newest profile. The axis is logarithmic: growth by a factor a layer is a straight line.
func (p *picture) variances() chart.Figure {
	f := chart.Figure{Title: "Variance of the hidden state by depth"}
	if p.newer.variance == nil {
		return f
	}
	lines := []chart.Line{p.first.line(5)}
	if p.newer.step != p.first.step {
		lines = append(lines, p.newer.line(0))
	}
	f.Panels = []chart.Panel{{
		X: chart.Axis{Label: "depth (layers; halves: after attention)", Whole: true}, Y: chart.Axis{Label: "variance", Log: true}, Lines: lines,
	}}
	return f
}

func (p profile) line(style int) chart.Line {
	l := chart.Line{Name: fmt.Sprintf("step %d", p.step), Style: chart.StyleOf(style), Y: p.variance, Points: true}
	for i := range p.variance {
		l.X = append(l.X, float64(i)/2)
	}
	return l
}

// gradientMap has a column a step and a row a layer.
func (p *picture) gradientMap() chart.Figure {
	f := chart.Figure{Title: "Gradient norm by layer and step", Scale: chart.Axis{Label: "gradient norm", Log: true}}
	if len(p.gradients.kept) == 0 {
		return f
	}
	h := &chart.Heat{Z: make([][]float64, len(p.gradients.kept[0].norms))}
	for layer := range h.Z {
		h.Y = append(h.Y, float64(layer+1))
	}
	for _, c := range p.gradients.kept {
		h.X = append(h.X, c.step)
		for layer := range h.Z {
			h.Z[layer] = append(h.Z[layer], c.norms[layer])
		}
	}
	f.Panels = []chart.Panel{{X: chart.Axis{Label: "step", Whole: true}, Y: chart.Axis{Label: "layer", Whole: true}, Heat: h}}
	return f
}
