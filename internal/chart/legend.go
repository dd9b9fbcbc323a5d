package chart

import (
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// entry is a picture with words in the legend.
type entry struct {
	words string
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
		add(bandWords, fillPicture(Style{Color: levelColor}.band(), nil))
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
	style := textStyle(textSize, false)
	widest := vg.Length(0)
	for i := range all {
		all[i].words = fit(all[i].words, style, room-thumbWidth-thumbGap)
		widest = max(widest, thumbWidth+thumbGap+style.Width(all[i].words)+entryGap)
	}
	x, row := vg.Length(0), 0
	for i := range all { // one row if they fit, each as wide as it is
		all[i].x = x
		x += thumbWidth + thumbGap + style.Width(all[i].words) + entryGap
	}
	if x-entryGap > room {
		columns := max(1, int((room+entryGap)/widest))
		for i := range all {
			all[i].x = vg.Length(i%columns) * (room + entryGap) / vg.Length(columns)
			row = i / columns
			all[i].y = vg.Length(row) * entryHeight
		}
	}
	return vg.Length(row+1)*entryHeight + 2
}

// drawLegend draws the entries upwards from the canvas' bottom.
func (l *layout) drawLegend(c draw.Canvas) {
	style := textStyle(textSize, false)
	style.YAlign = draw.YCenter
	for _, e := range l.legend {
		middle := c.Min.Y + l.lines - e.y - entryHeight/2
		e.draw(&c, c.Min.X+e.x, middle)
		c.FillText(style, vg.Point{X: c.Min.X + e.x + thumbWidth + thumbGap, Y: middle}, e.words)
	}
}
