package chart

import (
	"math"

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
	shared         shared
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
	gap       = vg.Length(10)
	barWidth  = vg.Length(78) // of the colour bar with its labels
	labelRoom = vg.Length(16) // of an axis' label
)

// heightOf is that of each of so many rows: a few have room, many are lower, so that they are seen together.
func heightOf(rows int, heat bool) vg.Length {
	switch {
	case rows == 1:
		return rowHeight
	case rows <= 3:
		return rowHeight * 0.87
	case heat:
		return rowHeight * 0.56
	}
	return rowHeight * 0.72
}

// shared tells which labels all panels of a figure have: these are written once a column, and once a row.
type shared struct{ x, y bool }

func sharedOf(panels []Panel) shared {
	s := shared{true, true}
	for _, p := range panels {
		s.x = s.x && p.X.Label == panels[0].X.Label
		s.y = s.y && p.Y.Label == panels[0].Y.Label
	}
	return s
}

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
	l.shared = sharedOf(l.Panels)
	panels := heightOf(l.rows, l.heat()) * vg.Length(l.rows)
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
	}
	first := l.panels(inner)
	if l.heat() {
		bar := draw.Crop(c, l.width-barWidth, -gap, 0, 0)
		bar.Max.Y, bar.Min.Y = first.Max.Y, min(first.Min.Y, first.Max.Y-leastBar)
		h := heat{scale: l.Scale, over: l.scale}
		h.bar().Draw(draw.Crop(bar, labelRoom, 0, 0, 0))
		upright(bar, l.Scale.Label, vg.Point{X: bar.Min.X + 5, Y: bar.Center().Y}, bar.Max.Y-bar.Min.Y+20)
	}
	l.drawLegend(draw.Crop(c, gap, -gap, gap/2, 0))
}

// leastBar is the least height of a colour bar.
const leastBar = vg.Length(110)

func (l *layout) heat() bool {
	for _, p := range l.Panels {
		if p.Heat != nil {
			return true
		}
	}
	return false
}

// panels draws them so that the axes of a column, and those of a row, are in line, and returns where the first one's data are.
func (l *layout) panels(c draw.Canvas) (first vg.Rectangle) {
	heading := vg.Length(0)
	for _, p := range l.Panels {
		if p.Title != "" {
			heading = textSize + 7
		}
	}
	tiles := draw.Tiles{Rows: l.rows, Cols: l.columns, PadX: 14, PadY: 8 + heading, PadTop: 2 + heading, PadRight: 4, PadLeft: labelRoom, PadBottom: labelRoom}
	if !l.shared.x {
		tiles.PadY += labelRoom
	}
	if !l.shared.y {
		tiles.PadX += labelRoom
	}
	size := (c.Max.X - c.Min.X) / vg.Length(l.columns)
	tall := (c.Max.Y - c.Min.Y) / vg.Length(l.rows)
	common := map[string]span{}
	for _, p := range l.Panels {
		if _, y := p.spans(); !y.empty() {
			s, ok := common[l.rangeOf(p)]
			if !ok {
				s = noSpan
			}
			common[l.rangeOf(p)] = s.with(y.min).with(y.max)
		}
	}
	plots := make([][]*plot.Plot, l.rows)
	for i := range plots {
		plots[i] = make([]*plot.Plot, l.columns)
	}
	for i, p := range l.Panels {
		x, y := p.spans()
		if s, ok := common[l.rangeOf(p)]; ok && l.rangeOf(p) != "" && p.Heat == nil {
			y = s
		}
		made := p.plot(l, x, y, size, tall)
		plots[i/l.columns][i%l.columns] = made
	}
	places := plot.Align(plots, tiles, c)
	for k, p := range l.Panels {
		i, j := k/l.columns, k%l.columns
		place := places[i][j]
		plots[i][j].Draw(place)
		data := plots[i][j].DataCanvas(place)
		if k == 0 {
			first = data.Rectangle
		}
		write(place, textStyle(textSize, true), p.Title, vg.Point{X: data.Center().X, Y: data.Max.Y + heading/2 + 1}, data.Max.X-data.Min.X+tiles.PadX)
		if !l.shared.x || k+l.columns >= len(l.Panels) {
			write(place, textStyle(textSize, false), p.X.Label, vg.Point{X: data.Center().X, Y: place.Min.Y - labelRoom/2 + 1}, data.Max.X-data.Min.X+tiles.PadX)
		}
		if !l.shared.y || j == 0 {
			left := place.Min.X
			for _, row := range places {
				left = min(left, row[j].Min.X)
			}
			upright(place, p.Y.Label, vg.Point{X: left - labelRoom + 6, Y: data.Center().Y}, data.Max.Y-data.Min.Y+tiles.PadY)
		}
		if x, y := p.spans(); x.empty() || y.empty() {
			write(place, textStyle(textSize, false), "no numbers", data.Center(), data.Max.X-data.Min.X)
		}
	}
	return first
}

// rangeOf names the range of y that a panel has together with others; empty: it has its own.
func (l *layout) rangeOf(p Panel) string {
	if l.SameY {
		return "all"
	}
	return p.Range
}

// upright writes a line of text from below to above.
func upright(c draw.Canvas, words string, at vg.Point, room vg.Length) {
	style := textStyle(textSize, false)
	words = fit(clean(words), style, room)
	style.XAlign, style.YAlign, style.Rotation = draw.XCenter, draw.YCenter, math.Pi/2
	c.FillText(style, at, words)
}

func (p Panel) plot(l *layout, x, y span, size, tall vg.Length) *plot.Plot {
	if p.Heat != nil {
		if x.empty() {
			x, y = p.X.padded(x), p.Y.padded(y)
		}
		made := newPlot(p.X, p.Y, x, y, max(2, int(size/40)), max(2, int(tall/26)))
		made.Add(heat{p.Heat, l.Scale, l.scale})
		return made
	}
	made := newPlot(p.X, p.Y, p.X.padded(x), p.Y.padded(y), max(2, int(size/40)), max(2, int(tall/26)))
	made.Add(lines{p})
	return made
}

// write puts a line of text about a point.
func write(c draw.Canvas, style text.Style, words string, at vg.Point, room vg.Length) {
	style.XAlign, style.YAlign = draw.XCenter, draw.YCenter
	c.FillText(style, at, fit(clean(words), style, room))
}

// newPlot makes gonum's plot without contents, with about xn and yn ticks. It has no labels: gonum keeps room for one at the middle of the values, which is near
// the top of a logarithmic axis, so that it would push the axis down.
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
