package report

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/vktrain/vktrain/internal/chart"
)

// depthKey is the setting in which the models of modelDepthFigure differ.
const depthKey = "model.n_layers"

// leastDepths is how many depths make a curve.
const leastDepths = 3

var depthInName = regexp.MustCompile(`(^|, |_)(model\.)?n_layers=\d+`)

// modelDepths groups the variants that differ in their number of layers alone, in its order; groups of few are left out.
func modelDepths(all []*variant) [][]*variant {
	var groups [][]*variant
	at := map[string]int{}
	for _, v := range all {
		r := v.runs[0]
		if r.Config == nil || r.settings == nil {
			continue
		}
		rest := restOf(r, depthKey)
		i, ok := at[rest]
		if !ok {
			i = len(groups)
			at[rest] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], v)
	}
	groups = slices.DeleteFunc(groups, func(g []*variant) bool { return len(g) < leastDepths })
	for _, g := range groups {
		slices.SortFunc(g, func(a, b *variant) int {
			return cmp.Compare(a.runs[0].Config.Model.NLayers, b.runs[0].Config.Model.NLayers)
		})
	}
	return groups
}

// modelDepthFigure shows what theorem 1 of Xiong et al. 2020 is about.
func modelDepthFigure(all groups) figure {
	f := figure{name: "grad-models", title: "Last layer's gradient against the depth of the model",
		text: "|dL/dW₂| of the last MLP at initialisation, before the first step. Theorem 1 of Xiong et al. 2020: of Post-LN it does not fall with the depth, of Pre-LN it falls with the root of it, a slope of -1/2 where both axes are logarithmic."}
	families := modelDepths(all.all())
	var lines []chart.Line
	for i, g := range families {
		name := strings.TrimPrefix(depthInName.ReplaceAllString(g[0].name, ""), ", ")
		line := chart.Line{Name: name, Style: chart.StyleOf(i), Points: true}
		if p := slices.Index(placements, g[0].runs[0].Config.Model.Placement); p >= 0 && onePlacementEach(families) {
			line.Style = chart.StyleOf(p)
			line.Name = placements[p]
		}
		line.Key = line.Name
		several := false
		for _, v := range g {
			if list := initialLastGrads(v); len(list) > 0 {
				line.X, line.Y = append(line.X, float64(v.runs[0].Config.Model.NLayers)), append(line.Y, mean(list))
				line.Low, line.High = append(line.Low, slices.Min(list)), append(line.High, slices.Max(list))
				several = several || len(list) > 1
			}
		}
		if !several {
			line.Low, line.High = nil, nil
		}
		if len(line.X) > 0 {
			lines = append(lines, line)
		}
	}
	return f.only(chart.Axis{Label: "depth of the model (layers)", Key: "n_layers", Log: true}, gradAxis, lines, fmt.Sprintf("No %d models differ in their number of layers alone, with a first step that is diagnosed.", leastDepths))
}

// onePlacementEach tells whether no two groups have one placement.
func onePlacementEach(groups [][]*variant) bool {
	seen := map[string]bool{}
	for _, g := range groups {
		p := g[0].runs[0].Config.Model.Placement
		if seen[p] {
			return false
		}
		seen[p] = true
	}
	return true
}

// initialLastGrads are a variant's gradient norms of the last down projection with the initial parameters, by seed.
func initialLastGrads(v *variant) (list []float64) {
	for _, r := range v.runs {
		all := r.diagnosed()
		if len(all) == 0 || all[0].Step != 1 {
			continue
		}
		d := all[0].Diagnosis
		if k, ok := d.Layers[len(d.Layers)-1].Kinds[lastDown]; ok && finite(float64(k.GradNorm)) {
			list = append(list, float64(k.GradNorm))
		}
	}
	return list
}
