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

// ordered are colours of matplotlib's map plasma (van der Walt & Smith 2015, CC0), from dark to light, but for its last, which are too pale for a line.
var ordered = []color.NRGBA{
	{0x0D, 0x08, 0x87, 255}, {0x4C, 0x02, 0xA1, 255}, {0x7E, 0x03, 0xA8, 255}, {0xAA, 0x23, 0x95, 255}, {0xCC, 0x47, 0x78, 255}, {0xE6, 0x6C, 0x5C, 255}, {0xF8, 0x95, 0x40, 255},
}

// OrderedStyle is the look of the i-th of n things that have an order: from dark to light, every other with dashes, so that neighbours are told apart.
func OrderedStyle(i, n int) Style {
	return Style{Color: between(ordered, float64(i)/float64(max(1, n-1))), Dash: i % 2}
}

// Dashed gives the style the i-th kind of dashes, from 0: solid. It starts anew after those that there are.
func (s Style) Dashed(i int) Style {
	s.Dash = i % len(dashes)
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
func heatColor(t float64) color.NRGBA { return between(viridis, t) }

// between is the colour at t, from 0 at the first to 1 at the last.
func between(all []color.NRGBA, t float64) color.NRGBA {
	t = min(max(t, 0), 1) * float64(len(all)-1)
	i := min(int(t), len(all)-2)
	a, b, f := all[i], all[i+1], t-float64(i)
	mix := func(x, y uint8) uint8 { return uint8(float64(x) + (float64(y)-float64(x))*f + 0.5) }
	return color.NRGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
}

// Colours of a heat map's cells that have none of the scale.
var (
	heatNaN  = color.NRGBA{R: 0xC8, G: 0xC8, B: 0xC8, A: 255}
	heatZero = color.NRGBA{R: 0xFF, G: 0xFF, B: 0xFF, A: 255}
)
