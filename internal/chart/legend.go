package chart

import (
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// entry is a picture with words in the legend.
type entry struct {
	words string
	bold  bool                                         // a heading, without a picture
	draw  func(c *draw.Canvas, left, middle vg.Length) // of a picture that is thumbWidth wide
	x, y  vg.Length                                    // its place, from the left and from the top
}

const (
	thumbWidth  = vg.Length(24)
	thumbGap    = vg.Length(4)
	entryGap    = vg.Length(16)
	entryHeight = vg.Length(14)
)

// entries are the lines' names, then the levels', then the signs and what else needs words.
func (l *layout) entries() []entry {
	var all []entry
	seen := map[string]bool{}
	add := func(words string, picture func(c *draw.Canvas, left, middle vg.Length)) {
		if words != "" && !seen[words] {
			seen[words] = true
			all = append(all, entry{words: words, draw: picture})
		}
	}
	if l.Legend != "" {
		all = append(all, entry{words: clean(l.Legend) + ":", bold: true})
	}
	band := false
	for _, p := range l.Panels {
		for _, line := range p.Lines {
			add(clean(line.Name), strokePicture(line.Style.line(), line.Points))
			band = band || line.Low != nil
		}
	}
	for _, p := range l.Panels {
		for _, v := range p.Levels {
			add(clean(v.Name), strokePicture(levelStyle, false))
		}
	}
	if band {
		fill, stroke := fillPicture(Style{Color: levelColor}.band(), nil), strokePicture(Style{Color: levelColor}.line(), false)
		add(bandWords, func(c *draw.Canvas, left, middle vg.Length) {
			fill(c, left, middle)
			stroke(c, left, middle)
		})
	}
	found := map[Sign]bool{}
	for _, p := range l.Panels {
		for s := range p.signs() {
			found[s] = true
		}
	}
	for s := SignDiverged; s <= signZero; s++ {
		if found[s] {
			add(signWords[s], func(c *draw.Canvas, left, middle vg.Length) {
				sign(c, s, levelColor, vg.Point{X: left + thumbWidth/2, Y: middle})
			})
		}
	}
	if l.zeros {
		add(zeroWords, fillPicture(heatZero, levelColor))
	}
	if l.nothing {
		add(nanWords, fillPicture(heatNaN, nil))
	}
	return all
}

func strokePicture(style draw.LineStyle, dot bool) func(c *draw.Canvas, left, middle vg.Length) {
	return func(c *draw.Canvas, left, middle vg.Length) {
		c.StrokeLine2(style, left, middle, left+thumbWidth, middle)
		if dot {
			c.DrawGlyphNoClip(draw.GlyphStyle{Color: style.Color, Radius: 2, Shape: draw.CircleGlyph{}}, vg.Point{X: left + thumbWidth/2, Y: middle})
		}
	}
}

func fillPicture(fill, edge color.Color) func(c *draw.Canvas, left, middle vg.Length) {
	return func(c *draw.Canvas, left, middle vg.Length) {
		box := []vg.Point{{X: left, Y: middle - 4}, {X: left + thumbWidth, Y: middle - 4}, {X: left + thumbWidth, Y: middle + 4}, {X: left, Y: middle + 4}, {X: left, Y: middle - 4}}
		c.FillPolygon(fill, box)
		if edge != nil {
			c.StrokeLines(draw.LineStyle{Color: edge, Width: 0.5}, box)
		}
	}
}

// place gives each entry its place in rows of a width, as columns where there are several rows, and returns their height.
func place(all []entry, room vg.Length) vg.Length {
	if len(all) == 0 {
		return 0
	}
	heading := vg.Length(0)
	rest := all
	if all[0].bold {
		heading, rest = all[0].width()+entryGap, all[1:]
	}
	widest := vg.Length(0)
	for i := range all {
		all[i].words = fit(all[i].words, textStyle(textSize, all[i].bold), room-heading-thumbWidth-thumbGap)
	}
	x, row := heading, 0
	for i := range rest { // one row if they fit, each as wide as it is
		widest = max(widest, rest[i].width()+entryGap)
		rest[i].x = x
		x += rest[i].width() + entryGap
	}
	if x-entryGap > room {
		room -= heading
		columns := max(1, int((room+entryGap)/widest))
		for i := range rest {
			rest[i].x = heading + vg.Length(i%columns)*(room+entryGap)/vg.Length(columns)
			row = i / columns
			rest[i].y = vg.Length(row) * entryHeight
		}
	}
	return vg.Length(row+1)*entryHeight + 2
}

// width is that of the picture and the words.
func (e entry) width() vg.Length {
	w := textStyle(textSize, e.bold).Width(e.words)
	if e.bold {
		return w
	}
	return thumbWidth + thumbGap + w
}

// drawLegend draws the entries upwards from the canvas' bottom.
func (l *layout) drawLegend(c draw.Canvas) {
	for _, e := range l.legend {
		style := textStyle(textSize, e.bold)
		style.YAlign = draw.YCenter
		x, middle := c.Min.X+e.x, c.Min.Y+l.lines-e.y-entryHeight/2
		if e.draw != nil {
			e.draw(&c, x, middle)
			x += thumbWidth + thumbGap
		}
		c.FillText(style, vg.Point{X: x, Y: middle}, e.words)
	}
}
