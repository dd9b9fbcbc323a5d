package chart

import (
	weight "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// layout is a figure with the place of each part.
type layout struct {
	Figure
	columns, rows  int
	legend         []entry
	title, lines   vg.Length // heights of the title and the legend
	width, height  vg.Length
	scale          span // of heat maps
	zeros, nothing bool // heat maps have cells of 0, or of no number
}

// textStyle is upright, or bold.
func textStyle(size vg.Length, bold bool) text.Style {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	if bold {
		f.Weight = weight.WeightBold
	}
	return text.Style{Color: levelColor, Font: f, Handler: plot.DefaultTextHandler}
}

const (
	gap      = vg.Length(10)
	barWidth = vg.Length(78) // of the colour bar with its labels
)

// layout is for a figure so wide, and as high as reads well.
func (f Figure) layout(width vg.Length) *layout {
	l := &layout{Figure: f, columns: f.Columns, width: width}
	n := max(1, len(f.Panels))
	if len(f.Panels) == 0 {
		l.Panels = []Panel{{}}
	}
	if l.columns == 0 {
		l.columns = map[int]int{1: 1, 2: 2, 4: 2}[n]
	}
	if l.columns == 0 {
		l.columns = 3
	}
	l.columns = min(l.columns, n)
	l.rows = (n + l.columns - 1) / l.columns
	l.scale = noSpan
	for _, p := range l.Panels {
		if p.Heat == nil {
			continue
		}
		s, zeros, nans := p.Heat.values(f.Scale)
		if !s.empty() {
			l.scale = l.scale.with(s.min).with(s.max)
		}
		l.zeros, l.nothing = l.zeros || zeros, l.nothing || nans
	}
	l.scale = f.Scale.shown(l.scale)
	l.legend = l.entries()
	l.lines = place(l.legend, width-2*gap)
	if f.Title != "" {
		l.title = titleSize + 10
	}
	panels := rowHeight * vg.Length(l.rows)
	if l.rows == 1 && l.columns == 1 {
		panels = onlyHeight
	}
	l.height = l.title + panels + l.lines + gap
	return l
}

func (l *layout) draw(c draw.Canvas) {
	if l.title > 0 {
		style := textStyle(titleSize, true)
		style.YAlign = draw.YTop
		c.FillText(style, vg.Point{X: c.Min.X + gap, Y: c.Max.Y - 5}, clean(l.Title))
	}
	inner := draw.Crop(c, gap, -gap, l.lines+gap, -l.title)
	if l.heat() {
		inner.Max.X -= barWidth
		bar := draw.Crop(c, l.width-barWidth-gap/2, -gap, l.lines+gap, -l.title)
		h := heat{scale: l.Scale, over: l.scale}
		bar.Max.Y -= textSize + 7
		bar.Min.Y = max(bar.Min.Y, bar.Max.Y-rowHeight+20)
		h.bar().Draw(bar)
	}
	l.panels(inner)
	l.drawLegend(draw.Crop(c, gap, -gap, gap/2, 0))
}

func (l *layout) heat() bool {
	for _, p := range l.Panels {
		if p.Heat != nil {
			return true
		}
	}
	return false
}

// panels draws them so that the axes of a column, and those of a row, are in line.
func (l *layout) panels(c draw.Canvas) {
	heading := vg.Length(0)
	for _, p := range l.Panels {
		if p.Title != "" {
			heading = textSize + 7
		}
	}
	tiles := draw.Tiles{Rows: l.rows, Cols: l.columns, PadX: 14, PadY: 8 + heading, PadTop: 2 + heading, PadRight: 4}
	size := (c.Max.X - c.Min.X) / vg.Length(l.columns)
	tall := (c.Max.Y - c.Min.Y) / vg.Length(l.rows)
	common := noSpan
	for _, p := range l.Panels {
		if _, y := p.spans(); !y.empty() {
			common = common.with(y.min).with(y.max)
		}
	}
	plots := make([][]*plot.Plot, l.rows)
	for i := range plots {
		plots[i] = make([]*plot.Plot, l.columns)
	}
	for i, p := range l.Panels {
		x, y := p.spans()
		if l.SameY && p.Heat == nil {
			y = common
		}
		made := p.plot(l, x, y, size, tall)
		plots[i/l.columns][i%l.columns] = made
	}
	for i, row := range plot.Align(plots, tiles, c) {
		for j, place := range row {
			if plots[i][j] == nil {
				continue
			}
			plots[i][j].Draw(place)
			p, data := l.Panels[i*l.columns+j], plots[i][j].DataCanvas(place)
			write(place, textStyle(textSize, true), p.Title, vg.Point{X: data.Center().X, Y: tiles.At(c, j, i).Max.Y + heading/2 - 1}, data.Max.X-data.Min.X)
			if x, y := p.spans(); x.empty() || y.empty() {
				write(place, textStyle(textSize, false), "no numbers", data.Center(), data.Max.X-data.Min.X)
			}
		}
	}
}

func (p Panel) plot(l *layout, x, y span, size, tall vg.Length) *plot.Plot {
	if p.Heat != nil {
		if x.empty() {
			x, y = p.X.padded(x), p.Y.padded(y)
		}
		made := newPlot(p.X, p.Y, x, y, int(size/55), int(tall/26))
		made.Add(heat{p.Heat, l.Scale, l.scale})
		return made
	}
	made := newPlot(p.X, p.Y, p.X.padded(x), p.Y.padded(y), int(size/55), int(tall/26))
	made.Add(lines{p})
	return made
}

// write puts a line of text about a point.
func write(c draw.Canvas, style text.Style, words string, at vg.Point, room vg.Length) {
	style.XAlign, style.YAlign = draw.XCenter, draw.YCenter
	c.FillText(style, at, fit(clean(words), style, room))
}

// newPlot makes gonum's plot without contents, with about xn and yn ticks.
func newPlot(x, y Axis, xs, ys span, xn, yn int) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	for _, a := range []struct {
		of Axis
		to *plot.Axis
		s  span
		n  int
	}{{x, &p.X, xs, xn}, {y, &p.Y, ys, yn}} {
		a.of.set(a.to, a.s, a.n)
		a.to.Label.Text = a.of.Label
		a.to.Label.TextStyle.Font, a.to.Label.TextStyle.Color = textStyle(textSize, false).Font, levelColor
		a.to.Label.Padding = 3
		a.to.Tick.Label.Font, a.to.Tick.Label.Color = textStyle(textSize-1, false).Font, levelColor
		a.to.Tick.Length = 4
		a.to.LineStyle.Color, a.to.LineStyle.Width = levelColor, 0.6
		a.to.Tick.LineStyle.Color, a.to.Tick.LineStyle.Width = levelColor, 0.6
		a.to.Padding = 0
	}
	return p
}

// fit shortens a text to a width.
func fit(s string, style text.Style, room vg.Length) string {
	r := []rune(s)
	for len(r) > 2 && style.Width(string(r)) > room {
		r = append(r[:len(r)-2], '…')
	}
	return string(r)
}
