package report

import (
	"cmp"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vktrain/vktrain/internal/chart"
)

// variant is the runs that differ in their seed alone.
type variant struct {
	name  string
	style chart.Style
	runs  []*Run // in the order of their seeds
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
		var parts []string
		for _, key := range keys {
			value, ok := r.settings[key]
			if !ok {
				value = "default"
			}
			if key != "model.placement" {
				value = key[strings.LastIndexByte(key, '.')+1:] + "=" + value
			}
			parts = append(parts, value)
		}
		if len(parts) == 0 {
			parts = []string{cmp.Or(r.settings["model.placement"], "runs")}
		}
		r.Variant = strings.Join(parts, ", ")
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
	if i := slices.Index(keys, "model.placement"); i > 0 {
		keys = slices.Insert(slices.Delete(keys, i, i+1), 0, "model.placement")
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

// variantsOf groups runs, in the order in which their variants come first, or that of placements where each variant has its own.
func variantsOf(runs []Run) []*variant {
	var all []*variant
	byName := map[string]*variant{}
	for i := range runs {
		r := &runs[i]
		v := byName[r.Variant]
		if v == nil {
			v = &variant{name: r.Variant}
			byName[r.Variant] = v
			all = append(all, v)
		}
		v.runs = append(v.runs, r)
	}
	slots := map[int]bool{}
	for _, v := range all {
		slices.SortStableFunc(v.runs, func(a, b *Run) int { return cmp.Compare(a.Seed, b.Seed) })
		if c := v.runs[0].Config; c != nil {
			if i := slices.Index(placements, c.Model.Placement); i >= 0 {
				slots[i] = true
			}
		}
	}
	if len(slots) == len(all) { // each has a placement of its own
		slot := func(v *variant) int { return slices.Index(placements, v.runs[0].Config.Model.Placement) }
		slices.SortFunc(all, func(a, b *variant) int { return slot(a) - slot(b) })
		for _, v := range all {
			v.style = chart.StyleOf(slot(v))
		}
		return all
	}
	for i, v := range all {
		v.style = chart.StyleOf(i)
	}
	return all
}

// PlacementColor is the colour that a placement has in every figure in which it is what varies.
func PlacementColor(placement string) string {
	return chart.StyleOf(max(0, slices.Index(placements, placement))).Hex()
}
