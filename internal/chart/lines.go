package chart

import (
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// mostStretch is how much wider outliers may make an axis, which is at least a quarter of its numbers wide.
const mostStretch = 2

// spans are the ranges of a panel's x and y that can be drawn; outliers count on a
// logarithmic axis, where they fit in nearly, and where there is nothing else.
func (p Panel) spans() (x, y span) {
	if p.Heat != nil {
		return p.Heat.spans()
	}
	of := func(outliers bool) (x, y span) {
		x, y = noSpan, noSpan
		for _, l := range p.Lines {
			if l.Outlier && !p.Y.Log && !outliers {
				continue
			}
			for i := range l.X {
				if !p.X.drawable(l.X[i]) {
					continue
				}
				x = x.with(l.X[i])
				for _, list := range [][]float64{l.Y, l.Low, l.High} {
					if list != nil && p.Y.drawable(list[i]) {
						y = y.with(list[i])
					}
				}
			}
		}
		return x, y
	}
	x, y = of(false)
	most := mostStretch * math.Max(y.extent(), math.Abs(y.min)/4)
	if allX, allY := of(true); y.empty() || allY.extent() <= most {
		x, y = allX, allY
	}
	for _, l := range p.Levels {
		if p.Y.drawable(l.At) {
			y = y.with(l.At)
		}
	}
	return x, y
}

// lines draws a panel's bands, levels and lines, in this order.
type lines struct {
	p Panel
}

var _ plot.Plotter = lines{}

// Plot draws into the data's part of a canvas.
func (l lines) Plot(c draw.Canvas, plt *plot.Plot) {
	toX, toY := plt.Transforms(&c)
	grid(c, plt)
	for _, line := range l.p.Lines {
		l.band(c, line, toX, toY)
	}
	for _, v := range l.p.Levels {
		if l.p.Y.drawable(v.At) {
			c.StrokeLine2(levelStyle, c.Min.X, toY(v.At), c.Max.X, toY(v.At))
		}
	}
	var broad []int // the lines that may hide others
	for i, line := range l.p.Lines {
		if !line.Style.Thin && len(line.X) > 1 {
			broad = append(broad, i)
		}
	}
	for i, line := range l.p.Lines {
		style := line.Style.line()
		if k := slices.Index(broad, i); k >= 0 { // a line beneath is wider, so that it is seen where two are the same
			style.Width += mostWider * vg.Length(len(broad)-1-k) / vg.Length(max(1, len(broad)-1))
		}
		l.curve(c, line, style, toX, toY)
	}
}

// mostWider is how much wider the first line of a panel is than the last.
const mostWider = vg.Length(0.8)

// grid draws lines at the ticks that have labels, and a frame.
func grid(c draw.Canvas, plt *plot.Plot) {
	style := draw.LineStyle{Color: gridColor, Width: 0.5}
	toX, toY := plt.Transforms(&c)
	for _, t := range plt.X.Tick.Marker.Ticks(plt.X.Min, plt.X.Max) {
		if x := toX(t.Value); t.Label != "" && c.ContainsX(x) {
			c.StrokeLine2(style, x, c.Min.Y, x, c.Max.Y)
		}
	}
	for _, t := range plt.Y.Tick.Marker.Ticks(plt.Y.Min, plt.Y.Max) {
		if y := toY(t.Value); t.Label != "" && c.ContainsY(y) {
			c.StrokeLine2(style, c.Min.X, y, c.Max.X, y)
		}
	}
}

// pieces are the stretches of a line whose points can be drawn.
func (l lines) pieces(line Line) [][]int {
	var all [][]int
	var piece []int
	for i := range line.X {
		if l.p.X.drawable(line.X[i]) && l.p.Y.drawable(line.Y[i]) {
			piece = append(piece, i)
			continue
		}
		if piece != nil {
			all = append(all, piece)
		}
		piece = nil
	}
	if piece != nil {
		all = append(all, piece)
	}
	return all
}

func (l lines) band(c draw.Canvas, line Line, toX, toY func(float64) vg.Length) {
	if line.Low == nil {
		return
	}
	inside := func(v float64) vg.Length { // a band's end at 0 or infinity is the axis'
		switch {
		case l.p.Y.drawable(v):
			return toY(v)
		case v > 0:
			return c.Max.Y + 1
		}
		return c.Min.Y - 1
	}
	for _, piece := range l.pieces(line) {
		var outline []vg.Point
		for _, i := range piece {
			outline = append(outline, vg.Point{X: toX(line.X[i]), Y: inside(line.High[i])})
		}
		for k := len(piece) - 1; k >= 0; k-- {
			i := piece[k]
			outline = append(outline, vg.Point{X: toX(line.X[i]), Y: inside(line.Low[i])})
		}
		if len(piece) == 1 { // a line of no width
			c.StrokeLines(draw.LineStyle{Color: line.Style.band(), Width: 4}, c.ClipLinesXY(outline)...)
			continue
		}
		c.FillPolygon(line.Style.band(), c.ClipPolygonXY(outline))
	}
}

func (l lines) curve(c draw.Canvas, line Line, style draw.LineStyle, toX, toY func(float64) vg.Length) {
	dot := draw.GlyphStyle{Color: style.Color, Radius: 1.2 + style.Width/2, Shape: draw.CircleGlyph{}}
	pieces := l.pieces(line)
	var last *vg.Point
	for _, piece := range pieces {
		var points []vg.Point
		for _, i := range piece {
			points = append(points, vg.Point{X: toX(line.X[i]), Y: toY(line.Y[i])})
		}
		c.StrokeLines(style, c.ClipLinesXY(points)...)
		for _, at := range points {
			if line.Points || len(points) == 1 {
				c.DrawGlyph(dot, at) // leaves out what is outside
			}
		}
		last = &points[len(points)-1]
	}
	if last != nil && line.End != SignNone {
		sign(&c, line.End, style.Color, vg.Point{X: clamp(last.X, c.Min.X, c.Max.X), Y: clamp(last.Y, c.Min.Y, c.Max.Y)})
	}
	for i := range line.X {
		if s := l.missing(line, i); s != SignNone && (i == 0 || l.missing(line, i-1) != s) && l.p.X.drawable(line.X[i]) {
			y := c.Max.Y - 4
			if s == signZero || line.Y[i] < 0 {
				y = c.Min.Y + 4
			}
			sign(&c, s, style.Color, vg.Point{X: clamp(toX(line.X[i]), c.Min.X, c.Max.X), Y: y})
		}
	}
}

// missing is the sign for a point that the axis has no place for.
func (l lines) missing(line Line, i int) Sign {
	switch y := line.Y[i]; {
	case l.p.Y.drawable(y):
		return SignNone
	case l.p.Y.Log && y < tiny && !math.IsInf(y, -1):
		return signZero
	}
	return signInfinite
}

// signs lists those that a panel has, in the order of their constants.
func (p Panel) signs() map[Sign]bool {
	found := map[Sign]bool{}
	for _, line := range p.Lines {
		if len(lines{p}.pieces(line)) > 0 {
			found[line.End] = true
		}
		for i := range line.X {
			found[lines{p}.missing(line, i)] = true
		}
	}
	delete(found, SignNone)
	return found
}

func clamp(v, low, high vg.Length) vg.Length { return min(max(v, low), high) }
