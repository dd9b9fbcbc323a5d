package chart

import (
	"image"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg/draw"
)

// spans reach from the first cell's outer edge to the last's.
func (h *Heat) spans() (x, y span) {
	if len(h.X) == 0 || len(h.Y) == 0 {
		return noSpan, noSpan
	}
	ex, ey := edges(h.X), edges(h.Y)
	return span{ex[0], ex[len(ex)-1]}, span{ey[0], ey[len(ey)-1]}
}

// edges lie half-way between centres, and outside of the first and the last as far, but at most half a step or layer: beyond there is nothing.
func edges(centres []float64) []float64 {
	n := len(centres)
	if n == 1 {
		return []float64{centres[0] - 0.5, centres[0] + 0.5}
	}
	all := make([]float64, n+1)
	for i := 1; i < n; i++ {
		all[i] = (centres[i-1] + centres[i]) / 2
	}
	all[0] = centres[0] - math.Min(all[1]-centres[0], 0.5)
	all[n] = centres[n-1] + math.Min(centres[n-1]-all[n-1], 0.5)
	return all
}

// values is the range of what a map shows on a scale, and whether it has zeros, and numbers that are none.
func (h *Heat) values(scale Axis) (s span, zeros, nans bool) {
	s = noSpan
	for _, row := range h.Z {
		for _, v := range row {
			switch {
			case scale.drawable(v):
				s = s.with(v)
			case v == 0:
				zeros = true
			default:
				nans = true
			}
		}
	}
	return s, zeros, nans
}

// heat draws a map as an image without smooth passages.
type heat struct {
	h     *Heat
	scale Axis
	over  span
}

var _ plot.Plotter = heat{}

// cellColor is the colour of a value.
func (h heat) cellColor(v float64) color.NRGBA {
	switch {
	case !h.scale.drawable(v) && v == 0:
		return heatZero
	case !h.scale.drawable(v):
		return heatNaN
	case h.scale.Log:
		v = logScale{}.Normalize(h.over.min, h.over.max, v)
	default:
		v = (v - h.over.min) / (h.over.max - h.over.min)
	}
	return heatColor(v)
}

// Plot draws into the data's part of a canvas. A reader's program may smooth an image that it enlarges, so that it has more points than the canvas.
func (h heat) Plot(c draw.Canvas, plt *plot.Plot) {
	if len(h.h.X) == 0 || len(h.h.Y) == 0 {
		return
	}
	const fine = 2
	w, height := int(fine*(c.Max.X-c.Min.X)), int(fine*(c.Max.Y-c.Min.Y))
	if w < 1 || height < 1 {
		return
	}
	columns, rows := cells(edges(h.h.X), span{plt.X.Min, plt.X.Max}, w), cells(edges(h.h.Y), span{plt.Y.Min, plt.Y.Max}, height)
	img := image.NewNRGBA(image.Rect(0, 0, w, height))
	for j := range height {
		row := rows[height-1-j]
		if j > 0 && row == rows[height-j] { // the line above has it
			copy(img.Pix[j*img.Stride:][:img.Stride], img.Pix[(j-1)*img.Stride:])
			continue
		}
		for i, column := range columns {
			if row >= 0 && column >= 0 {
				img.SetNRGBA(i, j, h.cellColor(h.h.Z[row][column]))
			}
		}
	}
	c.DrawImage(c.Rectangle, img)
}

// cells says for each of n points of a range in which cell it is; -1 is none.
func cells(edges []float64, r span, n int) []int {
	all := make([]int, n)
	at := 0
	for i := range all {
		v := r.min + (r.max-r.min)*(float64(i)+0.5)/float64(n)
		for at < len(edges)-1 && v >= edges[at+1] {
			at++
		}
		if all[i] = at; v < edges[0] || at == len(edges)-1 {
			all[i] = -1
		}
	}
	return all
}

// bar is the scale of colours: a plot of one column.
func (h heat) bar() *plot.Plot {
	p := newPlot(Axis{}, h.scale, span{0, 1}, h.over, 0, 6)
	p.HideX()
	p.Add(gradient{h})
	return p
}

type gradient struct{ heat }

// Plot fills the canvas with the scale, the largest on top.
func (g gradient) Plot(c draw.Canvas, plt *plot.Plot) {
	const steps = 256
	img := image.NewNRGBA(image.Rect(0, 0, 1, steps))
	for j := range steps {
		img.SetNRGBA(0, j, heatColor(1-float64(j)/(steps-1)))
	}
	c.DrawImage(c.Rectangle, img)
}

// shown is the range of the scale: as it is, for colours need no space at the ends, unless it has no extent.
func (a Axis) shown(s span) span {
	if s.empty() || s.min == s.max || math.IsInf(s.max-s.min, 0) {
		return a.padded(s)
	}
	return s
}
