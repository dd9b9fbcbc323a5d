package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"strings"
	"unicode"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Figure is one image: panels in rows, a legend for all of them below, and for heat maps one colour bar.
type Figure struct {
	Title   string
	Panels  []Panel
	Columns int    // of panels; 0: as many as read well
	SameY   bool   // all panels have one range of y
	Scale   Axis   // of the colour bar, where panels are heat maps
	Legend  string // what the lines' names are of; may be empty
}

// Panel is a pair of axes with lines, or with a heat map.
type Panel struct {
	Title  string
	X, Y   Axis
	Range  string // panels of one name have one range of y; empty: its own
	Lines  []Line
	Levels []Level
	Heat   *Heat
}

// Axis is what an axis is of.
type Axis struct {
	Label string // with its unit
	Key   string // the column's name in the CSV
	Log   bool
	Whole bool // steps, layers: ticks are at whole numbers
}

// Line is a curve, and if Low and High are given, a band about it. X, Y, Low and High are as long as each other.
type Line struct {
	Name      string // in the legend; lines of one name share an entry, and one without has none
	Key       string // the series' name in the CSV; empty: Name
	Style     Style
	X, Y      []float64
	Low, High []float64
	Points    bool // each point has a dot
	End       Sign // at the last point that can be drawn
	Outlier   bool // it does not stretch an axis far, unless that is logarithmic or there are only outliers
}

// Level is a horizontal line.
type Level struct {
	Name string
	At   float64
}

// Heat is a map of values: Z[i][j] is at Y[i] and X[j]. X and Y grow.
type Heat struct {
	X, Y []float64
	Z    [][]float64
}

// Sign is a mark at a line's end, or at an axis' end for what can't be drawn.
type Sign int

// Signs.
const (
	SignNone       Sign = iota
	SignDiverged        // a cross: the run diverged after this point
	SignUnfinished      // a ring: the run has no more points yet
	signInfinite        // not finite, or too large for the axis
	signZero            // too small for a logarithmic axis
)

var signWords = map[Sign]string{
	SignDiverged: "a run that diverged", SignUnfinished: "a run without its last step", signInfinite: "not finite, or beyond any axis", signZero: "0, or below any axis",
}

// Words of the legend.
const (
	bandWords = "mean and range over the seeds"
	nanWords  = "no number there"
	zeroWords = "0"
)

// Sizes. On a page that is as wide as a figure's 640 points, text has the size of the page's.
const (
	width       = vg.Length(640)
	rowHeight   = vg.Length(215)
	onlyHeight  = vg.Length(300) // a single panel's
	textSize    = vg.Length(9.5)
	titleSize   = vg.Length(12)
	dotsPerInch = 144
)

// SVG draws the figure as an XML document that names no other file; its fonts are the reader's.
func (f Figure) SVG() (svg []byte, err error) {
	defer recovered(&err)
	l := f.layout(width)
	c := vgsvg.New(width, l.height)
	l.draw(draw.New(c))
	var out bytes.Buffer
	if _, err := c.WriteTo(&out); err != nil {
		return nil, err
	}
	// vgsvg names one font, which few have, calls its PNGs JPEGs, and leaves images in their own proportions.
	s := bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"))
	s = bytes.ReplaceAll(s, []byte(`"data:image/jpg;base64,`), []byte(`"data:image/png;base64,`))
	return bytes.ReplaceAll(s, []byte("<image x="), []byte(`<image preserveAspectRatio="none" x=`)), nil
}

// PNG draws the figure as an image.
func (f Figure) PNG() (png []byte, err error) {
	defer recovered(&err)
	l := f.layout(width)
	c := vgimg.NewWith(vgimg.UseWH(width, l.height), vgimg.UseDPI(dotsPerInch), vgimg.UseBackgroundColor(color.White))
	l.draw(draw.New(c))
	var out bytes.Buffer
	_, err = vgimg.PngCanvas{Canvas: c}.WriteTo(&out)
	return out.Bytes(), err
}

// Draw draws the figure as a part of another image, in the canvas' size. The background is the image's.
func (f Figure) Draw(c draw.Canvas) (err error) {
	defer recovered(&err)
	f.layout(c.Max.X - c.Min.X).draw(c)
	return nil
}

// recovered turns a panic into an error: gonum panics at what it can't draw.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the figure can't be drawn: %v", p)
	}
}

// longestName is how many characters of a name a legend shows.
const longestName = 64

// clean makes a name that others gave fit for one line of an image, and for XML.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
	if r := []rune(s); len(r) > longestName {
		return string(r[:longestName/2]) + "…" + string(r[len(r)-longestName/2+1:])
	}
	return s
}
