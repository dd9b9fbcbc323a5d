package chart

import (
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Style is how a line looks.
type Style struct {
	Color color.NRGBA
	Dash  int  // an index of dashes: 0 is solid
	Thin  bool // for one run of several
}

// colours are those of Okabe & Ito 2008, which people who see fewer colours tell apart too, but for the yellow, which is too pale for a line; grey is in its place.
var colours = []color.NRGBA{
	{R: 0x00, G: 0x72, B: 0xB2, A: 255}, // blue
	{R: 0xD5, G: 0x5E, B: 0x00, A: 255}, // vermilion
	{R: 0x00, G: 0x9E, B: 0x73, A: 255}, // bluish green
	{R: 0xCC, G: 0x79, B: 0xA7, A: 255}, // reddish purple
	{R: 0xE6, G: 0x9F, B: 0x00, A: 255}, // orange
	{R: 0x56, G: 0xB4, B: 0xE9, A: 255}, // sky blue
	{R: 0x55, G: 0x55, B: 0x55, A: 255}, // grey
}

var dashes = [][]vg.Length{nil, {6, 2.5}, {1.5, 2}, {8, 2, 1.5, 2}, {4, 1.5, 1.5, 1.5, 1.5, 1.5}}

// Styles is how many looks StyleOf tells apart.
var Styles = len(colours) * len(dashes)

// solid is how many of the first styles are solid lines. The next have dashes, so that a curve beneath is seen where two are the same.
const solid = 3

// StyleOf is the look of the i-th thing, from 0: first the colours change, then the dashes. It starts anew after Styles.
func StyleOf(i int) Style {
	i %= Styles
	s := Style{Color: colours[i%len(colours)], Dash: i / len(colours)}
	if i%len(colours) >= solid {
		s.Dash = (s.Dash + 1) % len(dashes)
	}
	return s
}

// Shade is the style's colour mixed with white at t = -1, as it is at 0, and with black at 1: for things that have an order.
func (s Style) Shade(t float64) Style {
	to, share := uint8(255), -0.6*t
	if t > 0 {
		to, share = 0, 0.5*t
	}
	mix := func(c uint8) uint8 { return uint8(float64(c) + (float64(to)-float64(c))*min(share, 1) + 0.5) }
	s.Color.R, s.Color.G, s.Color.B = mix(s.Color.R), mix(s.Color.G), mix(s.Color.B)
	return s
}

// Hex is the colour for a page, such as #0072B2.
func (s Style) Hex() string {
	const digits = "0123456789ABCDEF"
	hex := []byte{'#'}
	for _, b := range []uint8{s.Color.R, s.Color.G, s.Color.B} {
		hex = append(hex, digits[b>>4], digits[b&15])
	}
	return string(hex)
}

func (s Style) line() draw.LineStyle {
	l := draw.LineStyle{Color: s.Color, Width: 1.6, Dashes: dashes[s.Dash%len(dashes)]}
	if s.Thin {
		l.Width = 0.8
	}
	return l
}

// band is the fill of a band in the line's colour.
func (s Style) band() color.Color {
	c := s.Color
	c.A = 48
	return c
}

var (
	gridColor  = color.NRGBA{R: 0xE4, G: 0xE4, B: 0xE4, A: 255}
	levelColor = color.NRGBA{R: 0x40, G: 0x40, B: 0x40, A: 255}
	levelStyle = draw.LineStyle{Color: levelColor, Width: 1, Dashes: []vg.Length{3, 3}}
)

// viridis are nine colours of matplotlib's map of that name (van der Walt & Smith 2015, CC0): its lightness grows evenly.
var viridis = []color.NRGBA{
	{0x44, 0x01, 0x54, 255}, {0x47, 0x2D, 0x7B, 255}, {0x3B, 0x52, 0x8B, 255}, {0x2C, 0x72, 0x8E, 255}, {0x21, 0x91, 0x8C, 255},
	{0x28, 0xAE, 0x80, 255}, {0x5E, 0xC9, 0x62, 255}, {0xAD, 0xDC, 0x30, 255}, {0xFD, 0xE7, 0x25, 255},
}

// heatColor is the colour of t from 0 to 1.
func heatColor(t float64) color.NRGBA {
	t = min(max(t, 0), 1) * float64(len(viridis)-1)
	i := min(int(t), len(viridis)-2)
	a, b, f := viridis[i], viridis[i+1], t-float64(i)
	mix := func(x, y uint8) uint8 { return uint8(float64(x) + (float64(y)-float64(x))*f + 0.5) }
	return color.NRGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
}

// Colours of a heat map's cells that have none of the scale.
var (
	heatNaN  = color.NRGBA{R: 0xC8, G: 0xC8, B: 0xC8, A: 255}
	heatZero = color.NRGBA{R: 0xFF, G: 0xFF, B: 0xFF, A: 255}
)
