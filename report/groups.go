package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/vktrain/vktrain/internal/chart"
)

// choice is the value that a run has on an axis: a setting, or an experiment's axis.
type choice struct{ axis, value string }

// label is how a choice is named: a placement by itself, others with their axis.
func (c choice) label() string {
	if c.axis == placementAxis {
		return c.value
	}
	return lastPart(c.axis) + "=" + c.value
}

const placementAxis = "model.placement"

// lastPart is a key without its section.
func lastPart(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

func labelOf(choices []choice) string {
	var parts []string
	for _, c := range choices {
		parts = append(parts, c.label())
	}
	return strings.Join(parts, ", ")
}

// axis is a setting in which variants differ.
type axis struct {
	name   string
	values []string // in the order of their first variants, or of their size if they are numbers
	number bool
}

func (a axis) at(v *variant) int { return slices.Index(a.values, v.value(a.name)) }

// axesOf are those on which variants differ; nil where these have not all the same ones.
func axesOf(all []*variant) []axis {
	var axes []axis
	for i, c := range all[0].choices {
		a := axis{name: c.axis, number: true}
		for _, v := range all {
			if len(v.choices) != len(all[0].choices) || v.choices[i].axis != c.axis {
				return nil
			}
			value := v.choices[i].value
			if _, err := strconv.ParseFloat(value, 64); err != nil {
				a.number = false
			}
			if !slices.Contains(a.values, value) {
				a.values = append(a.values, value)
			}
		}
		if a.number {
			slices.SortStableFunc(a.values, func(a, b string) int { return cmp.Compare(parsed(a), parsed(b)) })
		}
		if len(a.values) > 1 {
			axes = append(axes, a)
		}
	}
	return axes
}

func parsed(s string) float64 {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return math.NaN()
	}
	return x
}

// group is the variants that share a panel.
type group struct {
	title    string // of the panel; empty where there is one group
	variants []*variant
}

// groups are all variants.
type groups struct {
	list    []group
	legend  string // what the lines' names are of; may be empty
	reading string // how panels and looks tell variants apart; may be empty
}

// all are the variants of all groups, in the order in which tables have them.
func (g groups) all() []*variant {
	var all []*variant
	for _, each := range g.list {
		all = append(all, each.variants...)
	}
	slices.SortStableFunc(all, func(a, b *variant) int { return a.order - b.order })
	return all
}

// How many lines a panel has at most, and if they are shades of one number, whose order helps.
const (
	mostLines   = 7
	mostOrdered = 12
)

// groupsOf spreads variants over panels so that no panel has more lines than can be told apart, and gives them their looks: those of all figures. One panel has
// all if it can. Otherwise the variants are split by the axes that make the fewest panels, rather by one that is neither the placement nor what is compared
// (which belong side by side), and where no axes do that, by their order.
func groupsOf(all []*variant, compared map[string]string) groups {
	for i, v := range all {
		v.order = i
	}
	axes := axesOf(all)
	if len(axes) == 0 {
		for i, v := range all {
			v.style = chart.StyleOf(i)
		}
		if p := slices.Index(placements, all[0].value(placementAxis)); len(all) == 1 && p >= 0 {
			all[0].style = chart.StyleOf(p)
		}
		return chunked(all)
	}
	by := splitAxes(all, axes, compared)
	if by == nil {
		style(all, axes)
		return chunked(all)
	}
	var rest []axis
	for _, a := range axes {
		if !slices.ContainsFunc(by, func(b axis) bool { return b.name == a.name }) {
			rest = append(rest, a)
		}
	}
	return groups{list: split(all, by), reading: reading(by, rest, style(all, rest)), legend: shorten(all, rest)}
}

// reading says which axes have panels, colours and dashes, where there is more than one.
func reading(by, rest []axis, colour int) string {
	if len(by)+len(rest) < 2 {
		return ""
	}
	names := func(axes []axis) string {
		var all []string
		for _, a := range axes {
			all = append(all, lastPart(a.name))
		}
		return strings.Join(all, ", ")
	}
	var parts []string
	if len(by) > 0 {
		parts = append(parts, "panels: "+names(by))
	}
	if len(rest) > 0 {
		parts = append(parts, "colours: "+lastPart(rest[colour].name))
	}
	if dashed := slices.Delete(slices.Clone(rest), min(colour, len(rest)), min(colour+1, len(rest))); len(dashed) > 0 {
		parts = append(parts, "dashes: "+names(dashed))
	}
	return "What tells variants apart in the figures: " + strings.Join(parts, "; ") + "."
}

// shorten names lines by the axes that panels do not name, and returns the legend's heading: the name of the only one.
func shorten(all []*variant, rest []axis) string {
	for _, v := range all {
		var kept []choice
		for _, a := range rest {
			kept = append(kept, choice{a.name, v.value(a.name)})
		}
		if v.short = labelOf(kept); len(rest) == 1 {
			v.short = kept[0].value
		}
	}
	if len(rest) == 1 {
		return lastPart(rest[0].name)
	}
	return ""
}

// splitAxes chooses the axes by which variants are split: none if one panel holds all, nil if panels of every choice would have too many lines, or too few.
func splitAxes(all []*variant, axes []axis, compared map[string]string) []axis {
	var best []axis
	worth := []int{math.MaxInt}
	for set := range 1 << min(len(axes), 10) {
		by, rest, held := []axis{}, []axis{}, 0
		for i, a := range axes {
			if set&(1<<i) == 0 {
				rest = append(rest, a)
				continue
			}
			by = append(by, a)
			if _, ok := compared[a.name]; ok || a.name == placementAxis {
				held++
			}
		}
		most := mostLines
		if len(rest) == 1 && rest[0].number {
			most = mostOrdered
		}
		panels := split(all, by)
		lines := 0
		for _, p := range panels {
			lines = max(lines, len(p.variants))
		}
		if lines > most || len(panels) > 1 && lines < 2 {
			continue
		}
		if w := []int{len(panels), len(by), held, lines}; slices.Compare(w, worth) < 0 {
			best, worth = by, w
		}
	}
	return best
}

// split makes a group of the variants of each combination of the axes' values, in the order of these.
func split(all []*variant, by []axis) []group {
	at := map[string]int{}
	var list []group
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b *variant) int {
		for _, x := range by {
			if c := x.at(a) - x.at(b); c != 0 {
				return c
			}
		}
		return 0
	})
	for _, v := range sorted {
		var choices []choice
		for _, a := range by {
			choices = append(choices, choice{a.name, v.value(a.name)})
		}
		title := labelOf(choices)
		i, ok := at[title]
		if !ok {
			i = len(list)
			at[title] = i
			list = append(list, group{title: title})
		}
		list[i].variants = append(list[i].variants, v)
	}
	return list
}

// chunked puts variants into as few panels as can hold them, in their order.
func chunked(all []*variant) groups {
	panels := (len(all) + mostLines - 1) / mostLines
	if panels == 1 {
		return groups{list: []group{{variants: all}}}
	}
	size := (len(all) + panels - 1) / panels
	var g groups
	for i := 0; i < len(all); i += size {
		end := min(i+size, len(all))
		g.list = append(g.list, group{fmt.Sprintf("variants %d to %d of %d", i+1, end, len(all)), all[i:end]})
	}
	return g
}

// style gives variants their looks by the axes in which the lines of a panel differ. The placement is a colour, of its own everywhere, and the others are dashes,
// if these can be told apart; otherwise the axis of the most values is the colour, and the rest the dashes. Numbers are colours from dark to light.
// It returns the index of the axis whose colours they are.
func style(all []*variant, axes []axis) int {
	if len(axes) == 0 {
		for _, v := range all {
			v.style = chart.StyleOf(0)
		}
		return 0
	}
	const mostDashes = 3
	colour := 0
	for i, a := range axes {
		if len(a.values) > len(axes[colour].values) {
			colour = i
		}
	}
	if p := slices.IndexFunc(axes, func(a axis) bool { return a.name == placementAxis }); p >= 0 && len(combinations(all, axes, p)) <= mostDashes {
		colour = p
	}
	others := combinations(all, axes, colour)
	for _, v := range all {
		a := axes[colour]
		i := a.at(v)
		switch {
		case a.name == placementAxis && slices.Contains(placements, a.values[i]):
			v.style = chart.StyleOf(slices.Index(placements, a.values[i]))
		case a.number && len(a.values) > 2:
			v.style = chart.OrderedStyle(i, len(a.values))
		default:
			v.style = chart.StyleOf(i)
		}
		if len(others) > 1 {
			v.style = v.style.Dashed(slices.Index(others, v.without(axes, colour)))
		}
	}
	return colour
}

// combinations are the different labels that variants have on all axes but one, in the order of the axes' values.
func combinations(all []*variant, axes []axis, but int) []string {
	var list []string
	rest := slices.Delete(slices.Clone(axes), but, but+1)
	for _, g := range split(all, rest) {
		list = append(list, g.title)
	}
	return list
}

// without is the variant's label on all axes but one.
func (v *variant) without(axes []axis, but int) string {
	var choices []choice
	for i, a := range axes {
		if i != but {
			choices = append(choices, choice{a.name, v.value(a.name)})
		}
	}
	return labelOf(choices)
}

// value is empty where the variant has none on the axis.
func (v *variant) value(axis string) string {
	for _, c := range v.choices {
		if c.axis == axis {
			return c.value
		}
	}
	return ""
}

// add gives the figure a panel for each group, of what of gives of a run, and returns them; levels are in each. Where no run has any of it there is no panel.
func (f *figure) add(g groups, title string, x, y chart.Axis, bin int, of func(r *Run) points, levels ...chart.Level) []chart.Panel {
	var panels []chart.Panel
	any := false
	for _, each := range g.list {
		p := panel(title, x, y, curves(each.variants, bin, of), levels...)
		if any = any || len(p.Lines) > 0; each.title != "" {
			p.Title, p.Range = each.title, title+" "+y.Label
			if title != "" {
				p.Title = title + " · " + each.title
			}
		}
		panels = append(panels, p)
	}
	if !any {
		return nil
	}
	f.chart.Panels = append(f.chart.Panels, panels...)
	f.perGroup++
	return f.chart.Panels[len(f.chart.Panels)-len(panels):]
}

// finish arranges the panels where there are several groups: a row for each group if the figure shows few things, and otherwise one for each thing. A figure
// without a line becomes a reason.
func (f figure) finish(g groups, why string) figure {
	if f.perGroup == 0 {
		f.missing = why
		return f
	}
	f.chart.Title, f.chart.Legend = f.title, g.legend
	n := len(g.list)
	switch {
	case n == 1 || f.perGroup == 1:
	case f.perGroup <= 3:
		var turned []chart.Panel
		for i := range n {
			for j := range f.perGroup {
				turned = append(turned, f.chart.Panels[j*n+i])
			}
		}
		f.chart.Panels, f.chart.Columns = turned, f.perGroup
	default:
		f.chart.Columns = min(n, 4)
	}
	return f
}

// only gives the figure one panel, of lines that are not variants'. Without a line it becomes a reason.
func (f figure) only(x, y chart.Axis, lines []chart.Line, why string, levels ...chart.Level) figure {
	if len(lines) == 0 {
		f.missing = why
		return f
	}
	f.chart.Title, f.chart.Panels = f.title, []chart.Panel{panel("", x, y, lines, levels...)}
	return f
}

// grid are the variants in rows and columns, for figures with a panel for each: a column a group where all groups have the same variants but for it.
func (g groups) grid() (list []*variant, columns int) {
	n := len(g.list)
	rows := map[string]int{}
	for _, each := range g.list {
		for _, v := range each.variants {
			rows[v.short]++
		}
	}
	even := n > 1 && n <= 4
	for _, each := range g.list {
		even = even && len(each.variants) == len(rows)
	}
	if !even || !slices.Equal(slices.Compact(slices.Sorted(maps.Values(rows))), []int{n}) {
		all := g.all()
		return all, map[int]int{1: 1, 2: 2, 3: 3, 4: 2}[len(all)]
	}
	for _, first := range g.list[0].variants {
		for _, each := range g.list {
			i := slices.IndexFunc(each.variants, func(v *variant) bool { return v.short == first.short })
			list = append(list, each.variants[i])
		}
	}
	return list, n
}
