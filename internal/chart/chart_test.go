package chart

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	step = Axis{Label: "step", Key: "step", Whole: true}
	loss = Axis{Label: "loss (nats per token)", Key: "loss"}
	grad = Axis{Label: "gradient norm", Key: "grad_norm", Log: true}
)

// drawn makes both images and checks that they are whole: XML that names nothing outside, and a PNG that is wider than high or not empty.
func drawn(t *testing.T, f Figure) (svg string) {
	t.Helper()
	s, err := f.SVG()
	require.NoError(t, err)
	for d := xml.NewDecoder(bytes.NewReader(s)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if e, ok := token.(xml.StartElement); ok {
			require.Contains(t, []string{"svg", "g", "path", "text", "image"}, e.Name.Local)
			for _, a := range e.Attr {
				if a.Name.Local == "href" {
					require.True(t, strings.HasPrefix(a.Value, "data:image/png;base64,"))
				}
			}
		}
	}
	p, err := f.PNG()
	require.NoError(t, err)
	img, err := png.Decode(bytes.NewReader(p))
	require.NoError(t, err)
	require.Equal(t, int(width)*dotsPerInch/72, img.Bounds().Dx())
	return string(s)
}

func TestCSVHoldsEveryNumber(t *testing.T) {
	f := Figure{Panels: []Panel{{Title: "a, b", X: step, Y: loss, Lines: []Line{
		{Name: `say "x"`, X: []float64{1, 2}, Y: []float64{0.5, math.NaN()}, Low: []float64{0.25, 0}, High: []float64{1, math.Inf(1)}},
		{Name: "alone", X: []float64{3}, Y: []float64{1e300}},
	}, Levels: []Level{{"floor", 0.125}}}}}
	data, err := f.CSV()
	require.NoError(t, err)
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	require.NoError(t, err)
	require.Equal(t, [][]string{
		{"panel", "series", "step", "loss", "loss_low", "loss_high"},
		{"a, b", `say "x"`, "1", "0.5", "0.25", "1"},
		{"a, b", `say "x"`, "2", "NaN", "0", "+Inf"},
		{"a, b", "alone", "3", "1e+300", "", ""},
		{"a, b", "floor", "", "0.125", "", ""},
	}, rows)
	drawn(t, f)

	h := Figure{Scale: grad, Panels: []Panel{{Title: "p", X: step, Y: Axis{Key: "layer"}, Heat: &Heat{X: []float64{1, 5}, Y: []float64{0}, Z: [][]float64{{0, 3}}}}}}
	data, err = h.CSV()
	require.NoError(t, err)
	require.Equal(t, "panel,step,layer,grad_norm\np,1,0,0\np,5,0,3\n", string(data))
	drawn(t, h)
}

// The panels of one figure may measure different things: then columns have no one name.
func TestCSVOfPanelsThatDiffer(t *testing.T) {
	line := []Line{{Name: "l", X: []float64{1}, Y: []float64{2}}}
	data, err := Figure{Panels: []Panel{{Title: "p", X: step, Y: loss, Lines: line}, {Title: "q", X: step, Y: grad, Lines: line}}}.CSV()
	require.NoError(t, err)
	require.Equal(t, "panel,series,step,y\np,l,1,2\nq,l,1,2\n", string(data))
}

func TestGapsAndEndsAreShown(t *testing.T) {
	x := []float64{1, 2, 3, 4, 5, 6}
	p := Panel{X: step, Y: grad, Lines: []Line{
		{Name: "a", X: x, Y: []float64{1, 10, 0, math.NaN(), 10, math.Inf(1)}, End: SignDiverged},
		{Name: "b", X: x, Y: []float64{1, 2, 3, 4, 5, 6}, End: SignUnfinished},
	}}
	require.Equal(t, [][]int{{0, 1}, {4}}, lines{p}.pieces(p.Lines[0]))
	svg := drawn(t, Figure{Panels: []Panel{p}})
	for _, s := range []Sign{SignDiverged, SignUnfinished, signInfinite, signZero} {
		require.Contains(t, svg, signWords[s])
	}
	// On an axis without logarithms 0 has its place, and without gaps no word is of them.
	p.Y = loss
	p.Lines = p.Lines[:1]
	p.Lines[0].Y = []float64{1, 10, 0, 1, 10, 2}
	svg = drawn(t, Figure{Panels: []Panel{p}})
	require.NotContains(t, svg, signWords[signZero])
	require.NotContains(t, svg, signWords[signInfinite])
}

// An outlier leaves the others readable; alone it is seen.
func TestOutliersDoNotStretchTheAxis(t *testing.T) {
	p := Panel{X: step, Y: loss, Lines: []Line{{X: []float64{1, 2}, Y: []float64{3, 2}}, {X: []float64{1, 2}, Y: []float64{3, 1e6}, Outlier: true}}}
	_, y := p.spans()
	require.Equal(t, span{2, 3}, y)
	p.Lines = p.Lines[1:]
	_, y = p.spans()
	require.Equal(t, span{3, 1e6}, y)
}

func TestWhatNoAxisHoldsIsDrawnAllTheSame(t *testing.T) {
	odd := []float64{0, -1, 1, 5e-324, math.MaxFloat64, -math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(), 1e-30, 1e9, 1e9 + 1e-6}
	for _, y := range []Axis{loss, grad} {
		for _, x := range []Axis{step, {Label: "learning rate", Log: true}} {
			drawn(t, Figure{Panels: []Panel{{X: x, Y: y, Lines: []Line{{Name: "l", X: odd, Y: odd, Low: odd, High: odd, Points: true}}}}})
			for _, v := range odd {
				for _, f := range []Figure{
					{Panels: []Panel{{X: x, Y: y, Lines: []Line{{Name: "l", X: []float64{v}, Y: []float64{v}}}, Levels: []Level{{"level", v}}}}},
					{Scale: y, Panels: []Panel{{X: x, Y: step, Heat: &Heat{X: []float64{1}, Y: []float64{1}, Z: [][]float64{{v}}}}}},
				} {
					_, err := f.SVG()
					require.NoError(t, err)
				}
			}
		}
	}
	drawn(t, Figure{})
	drawn(t, Figure{Panels: []Panel{{Heat: &Heat{}}, {}}})
}

func TestHostileNames(t *testing.T) {
	name := "<script>alert(1)</script>&\"'\x00\x1b[31m\u202e\n日本\U0001F600" + strings.Repeat("long ", 100)
	f := Figure{Title: name, SameY: true, Panels: []Panel{{Title: name, X: step, Y: loss, Lines: []Line{{Name: name, X: []float64{1, 2}, Y: []float64{1, 2}}}, Levels: []Level{{name, 1}}}}}
	require.NotContains(t, drawn(t, f), "<script")
}

func TestTicks(t *testing.T) {
	labels := func(a Axis, low, high float64, n int) (all []string) {
		for _, t := range a.ticks(span{low, high}, n) {
			if t.Label != "" {
				all = append(all, t.Label)
			}
		}
		return all
	}
	require.Equal(t, []string{"0", "50", "100", "150", "200"}, labels(step, 0, 200, 5))
	require.Equal(t, []string{"1", "2", "3"}, labels(step, 0.5, 3.5, 9))
	require.Equal(t, []string{"5", "10", "15"}, labels(step, 0.5, 16.5, 2), "10 alone would be no scale")
	require.Equal(t, []string{"1"}, labels(step, 0.5, 1.5, 2), "there is one")
	require.Equal(t, []string{"2.20", "2.25", "2.30"}, labels(loss, 2.19, 2.31, 3))
	require.Equal(t, []string{"-0.5", "0.0", "0.5"}, labels(loss, -0.6, 0.6, 3))
	require.Equal(t, []string{"0.001", "0.01", "0.1", "1", "10", "100"}, labels(grad, 0.0005, 200, 8))
	require.Equal(t, []string{"1e-15", "1", "1e15"}, labels(grad, 1e-21, 1e21, 3))
	require.Equal(t, []string{"1", "2", "5", "10", "20", "50"}, labels(grad, 0.9, 60, 6))
	require.Equal(t, []string{"1.0", "1.5", "2.0"}, labels(grad, 0.9, 2.2, 3))
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 12346: "12350", 123456: "1.235e5", 0.00123456: "0.001235", 1e-7: "1e-7", -0.5: "-0.5", math.Inf(1): "∞", math.Inf(-1): "-∞", 65504: "65500", 0.0009999999: "1e-3",
	} {
		require.Equal(t, want, Short(v))
	}
	require.Equal(t, "NaN", Short(math.NaN()))
}

// Every look is another, and the first seven differ in colour.
func TestStylesDiffer(t *testing.T) {
	var all []Style
	for i := range Styles {
		require.False(t, slices.Contains(all, StyleOf(i)))
		all = append(all, StyleOf(i))
	}
	require.Equal(t, StyleOf(0), StyleOf(Styles))
	require.Equal(t, "#0072B2", StyleOf(0).Hex())
}

// Cells meet half-way between their centres, however these lie, and end half a step outside of them.
func TestCells(t *testing.T) {
	e := edges([]float64{1, 3, 7})
	require.Equal(t, []float64{0.5, 2, 5, 7.5}, e)
	require.Equal(t, []int{-1, 0, 0, 1, 1, 1, 2, 2, -1, -1, -1}, cells(e, span{-1, 10}, 11))
}

// Legend entries keep off each other and off the heading, and inside of the figure.
func TestLegendEntriesDoNotOverlap(t *testing.T) {
	for _, heading := range []string{"", "placement:"} {
		for _, n := range []int{1, 3, 9, 40} {
			var all []entry
			if heading != "" {
				all = append(all, entry{words: heading, bold: true})
			}
			for i := range n {
				all = append(all, entry{words: strings.Repeat("name ", i%7+1)})
			}
			room := width - 2*gap
			height := place(all, room)
			for i, a := range all {
				right := a.x + a.width()
				require.LessOrEqual(t, right, room)
				require.LessOrEqual(t, a.y+entryHeight, height)
				for _, b := range all[i+1:] {
					require.True(t, a.y != b.y || b.x >= right || a.x >= b.x+b.width(), "%q and %q", a.words, b.words)
				}
				if i > 0 && heading != "" {
					require.GreaterOrEqual(t, a.x, all[0].width(), "the heading has its column to itself")
				}
			}
		}
	}
}

// Ordered looks go from dark to light, and neighbours differ in their dashes too.
func TestOrderedStyles(t *testing.T) {
	light := func(s Style) int { return 2*int(s.Color.R) + 7*int(s.Color.G) + int(s.Color.B) }
	for n := 2; n <= 12; n++ {
		for i := 1; i < n; i++ {
			require.Greater(t, light(OrderedStyle(i, n)), light(OrderedStyle(i-1, n)), "%d of %d", i, n)
			require.NotEqual(t, OrderedStyle(i, n).Dash, OrderedStyle(i-1, n).Dash)
		}
	}
	require.Equal(t, ordered[0], OrderedStyle(0, 1).Color)
}

// Panels of one range have one axis, whatever lies in them; a label that all have is written once a column and once a row.
func TestPanelsShareRangesAndLabels(t *testing.T) {
	panel := func(title string, top float64, y Axis) Panel {
		return Panel{Title: title, X: step, Y: y, Range: "same", Lines: []Line{{Name: "l", X: []float64{1, 2}, Y: []float64{1, top}}}}
	}
	f := Figure{Columns: 2, Panels: []Panel{panel("a", 2, loss), panel("b", 50, loss), panel("c", 3, loss), panel("d", 4, loss)}}
	svg := drawn(t, f)
	require.Equal(t, 2, strings.Count(svg, ">"+loss.Label+"<"), "a row each")
	require.Equal(t, 2, strings.Count(svg, ">"+step.Label+"<"), "a column each")
	require.Equal(t, 4, strings.Count(svg, ">40<"), "each panel reaches to 50")
	f.Panels[3].Y, f.Panels[3].Range = grad, ""
	require.Equal(t, 3, strings.Count(drawn(t, f), ">"+loss.Label+"<"), "labels that differ are at each panel")
}
