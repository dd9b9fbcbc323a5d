package chart

import (
	"bytes"
	"encoding/csv"
	"strconv"
)

// CSV holds every number of the figure, also those that can't be drawn: NaN, +Inf and -Inf as such. Lines give panel, series, x, y and, where the
// figure has bands, low and high; heat maps give panel, x, y and the value. The columns of x and y, and of the value, are named by their axes' keys.
func (f Figure) CSV() ([]byte, error) {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	if (&layout{Figure: f}).heat() {
		first := f.Panels[0]
		_ = w.Write([]string{"panel", key(first.X, "x"), key(first.Y, "y"), key(f.Scale, "value")}) // Flush's error is the first
		for _, p := range f.Panels {
			for i, row := range p.Heat.Z {
				for j, v := range row {
					_ = w.Write([]string{p.Title, number(p.Heat.X[j]), number(p.Heat.Y[i]), number(v)})
				}
			}
		}
		w.Flush()
		return out.Bytes(), w.Error()
	}
	banded, x, y := f.columns()
	head := []string{"panel", "series", x, y}
	if banded {
		head = append(head, y+"_low", y+"_high")
	}
	_ = w.Write(head)
	for _, p := range f.Panels {
		for _, l := range p.Lines {
			series := l.Key
			if series == "" {
				series = l.Name
			}
			for i := range l.X {
				row := []string{p.Title, series, number(l.X[i]), number(l.Y[i])}
				switch {
				case l.Low != nil:
					row = append(row, number(l.Low[i]), number(l.High[i]))
				case banded:
					row = append(row, "", "")
				}
				_ = w.Write(row)
			}
		}
		for _, v := range p.Levels {
			row := []string{p.Title, v.Name, "", number(v.At)}
			if banded {
				row = append(row, "", "")
			}
			_ = w.Write(row)
		}
	}
	w.Flush()
	return out.Bytes(), w.Error()
}

// columns are the names of x and y: those of the axes, or x and y where panels differ.
func (f Figure) columns() (banded bool, x, y string) {
	for i, p := range f.Panels {
		px, py := key(p.X, "x"), key(p.Y, "y")
		if i == 0 {
			x, y = px, py
		}
		if px != x {
			x = "x"
		}
		if py != y {
			y = "y"
		}
		for _, l := range p.Lines {
			banded = banded || l.Low != nil
		}
	}
	return banded, x, y
}

func key(a Axis, otherwise string) string {
	if a.Key == "" {
		return otherwise
	}
	return a.Key
}
