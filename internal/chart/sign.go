package chart

import (
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// sign draws a mark on a white ground, so that it is seen upon curves.
func sign(c *draw.Canvas, s Sign, ink color.Color, at vg.Point) {
	const r = vg.Length(3.6)
	stroke := func(width vg.Length, ink color.Color, lines ...[]vg.Point) {
		c.StrokeLines(draw.LineStyle{Color: ink, Width: width}, lines...)
	}
	point := func(dx, dy vg.Length) vg.Point { return vg.Point{X: at.X + dx*r, Y: at.Y + dy*r} }
	switch s {
	case SignDiverged:
		cross := [][]vg.Point{{point(-1, -1), point(1, 1)}, {point(-1, 1), point(1, -1)}}
		stroke(3.4, color.White, cross...)
		stroke(1.7, ink, cross...)
	case SignUnfinished:
		c.DrawGlyphNoClip(draw.GlyphStyle{Color: color.White, Radius: r, Shape: draw.CircleGlyph{}}, at)
		c.SetLineStyle(draw.LineStyle{Color: ink, Width: 1.4})
		var ring vg.Path
		ring.Move(point(1, 0))
		ring.Arc(at, r, 0, 6.283185307179586)
		ring.Close()
		c.Stroke(ring)
	case signInfinite, signZero:
		up := vg.Length(1)
		if s == signZero {
			up = -1
		}
		triangle := []vg.Point{point(-0.9, -0.6*up), point(0.9, -0.6*up), point(0, up), point(-0.9, -0.6*up)}
		c.FillPolygon(color.White, triangle)
		stroke(1.2, ink, triangle)
	}
}
