package report

import (
	"cmp"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"github.com/vktrain/vktrain/internal/chart"
)

// variant is the runs that differ in their seed alone.
type variant struct {
	name    string
	id      string // in the results of an experiment, and among runs
	short   string // where the panel says the rest
	order   int
	choices []choice
	style   chart.Style
	runs    []*Run // in the order of their seeds
}

func (v *variant) in(s state) []*Run {
	var all []*Run
	for _, r := range v.runs {
		if r.state() == s {
			all = append(all, r)
		}
	}
	return all
}

// shown are the runs that stand for the variant where there is no room for several curves: the finished ones, or else all.
func (v *variant) shown() []*Run {
	if all := v.in(stateFinished); len(all) > 0 {
		return all
	}
	return v.runs
}

// notVariants are keys of the config that make no other variant, and those that follow from others.
var notVariants = []string{"seed", "device", "data.path", "model.preset", "eval_every", "sample_every", "sample_tokens", "diagnostics_every"}

// nameVariants gives runs without a variant the settings in which they differ, and otherwise their placement; without a config, the folder's name.
func nameVariants(runs []Run) {
	keys := differing(runs)
	for i := range runs {
		r := &runs[i]
		if r.Variant != "" {
			continue
		}
		if r.settings == nil {
			r.Variant = filepath.Base(r.Dir)
			continue
		}
		for _, key := range keys {
			value, ok := r.settings[key]
			if !ok {
				value = "default"
			}
			r.choices = append(r.choices, choice{key, value})
		}
		if r.Variant = labelOf(r.choices); len(keys) == 0 {
			r.Variant = cmp.Or(r.settings[placementAxis], "runs")
			r.choices = []choice{{placementAxis, r.Variant}}
		}
	}
}

// differing are the keys in which runs differ, the placement first.
func differing(runs []Run) []string {
	values := map[string]map[string]bool{}
	n := 0
	for _, r := range runs {
		if r.settings == nil || r.Variant != "" {
			continue
		}
		n++
		for k, v := range r.settings {
			if values[k] == nil {
				values[k] = map[string]bool{}
			}
			values[k][v] = true
		}
	}
	derived := derivedRates(runs)
	var keys []string
	for _, k := range slices.Sorted(maps.Keys(values)) {
		if len(values[k]) > 1 && !slices.Contains(notVariants, k) && !(k == "min_lr" && derived) {
			keys = append(keys, k)
		}
	}
	if i := slices.Index(keys, placementAxis); i > 0 {
		keys = slices.Insert(slices.Delete(keys, i, i+1), 0, placementAxis)
	}
	return keys
}

// derivedRates tells whether each run's lowest learning rate is the default share of its peak.
func derivedRates(runs []Run) bool {
	for _, r := range runs {
		if r.Config != nil && math.Abs(r.Config.Resolve().MinLR-r.Config.LR/10) > 1e-9*r.Config.LR {
			return false
		}
	}
	return true
}

// placements have the first styles, the scalar model's too, wherever they are what varies.
var placements = []string{"post", "pre", "peri", "olmo2", "none"}

// variantsOf puts together the runs of each variant, in the order in which variants come first, or that of placements where these are all that varies.
func variantsOf(runs []Run) []*variant {
	var all []*variant
	byID := map[string]*variant{}
	for i := range runs {
		r := &runs[i]
		v := byID[r.Variant]
		if v == nil {
			v = &variant{id: r.Variant, name: r.Variant, choices: r.choices}
			byID[r.Variant] = v
			all = append(all, v)
		}
		v.runs = append(v.runs, r)
	}
	names := map[string]bool{}
	for _, v := range all {
		slices.SortStableFunc(v.runs, func(a, b *Run) int { return cmp.Compare(a.Seed, b.Seed) })
		names[labelOf(v.choices)] = len(v.choices) > 0
	}
	for _, v := range all {
		if len(names) == len(all) && len(v.choices) > 0 {
			v.name = labelOf(v.choices)
		}
		v.short = v.name
	}
	if axes := axesOf(all); len(axes) == 1 && axes[0].name == placementAxis {
		slices.SortStableFunc(all, func(a, b *variant) int {
			return slices.Index(placements, a.value(placementAxis)) - slices.Index(placements, b.value(placementAxis))
		})
	}
	return all
}

// PlacementColor is the colour that a placement has in every figure in which it is what varies.
func PlacementColor(placement string) string {
	return chart.StyleOf(max(0, slices.Index(placements, placement))).Hex()
}
