package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vktrain/vktrain/experiment"
)

// readResults reads an experiment's results; nil if the folder has none.
func readResults(dir string) (*experiment.Results, error) {
	path := filepath.Join(dir, experiment.ResultsFile)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r experiment.Results
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("%s holds no results: %w: run vktrain compare again, which writes it anew", path, err)
	}
	if r.Format > experiment.ResultsFormat {
		return nil, fmt.Errorf("%s has format %d, and this program reads up to %d: use the vktrain that wrote it, or run vktrain compare again", path, r.Format, experiment.ResultsFormat)
	}
	return &r, nil
}

// apply gives runs the experiment's names for their variants and its word on which diverged. It returns the runs that the results tell of, in their
// order, and how many others there are.
func apply(results *experiment.Results, runs []Run) (kept []Run, others int) {
	for _, s := range results.Runs {
		i := slices.IndexFunc(runs, func(r Run) bool { return filepath.Base(r.Dir) == s.ID })
		if i < 0 {
			continue
		}
		r := runs[i]
		r.Variant, r.Diverged, r.Seed, r.device, r.figures = s.Combined, s.Diverged, s.Seed, s.Device, s.Figures
		if above, ok := s.Figures["above_floor"]; ok {
			r.resultFloor = s.Figures[experiment.MetricValLoss] - above
		}
		for _, a := range results.Axes {
			if value, ok := s.Variants[a.Name]; ok {
				r.choices = append(r.choices, choice{cmp.Or(a.Key, a.Name), value})
			}
		}
		kept = append(kept, r)
	}
	return kept, len(runs) - len(kept)
}

// resultsTable is the experiment's own table, with the variants' colours.
func resultsTable(results *experiment.Results, all []*variant) *table {
	t := tableOf(results.Table())
	for i, c := range results.Combinations {
		if j := slices.IndexFunc(all, func(v *variant) bool { return v.id == c.ID }); j >= 0 {
			t.Rows[i][0].Color = all[j].style.Hex()
		}
	}
	return &t
}

// tableOf is an experiment's table for the page.
func tableOf(t experiment.Table) table {
	row := func(cells []string) []cell {
		var all []cell
		for i, s := range cells {
			all = append(all, cell{Text: strings.Replace(s, " [", "\n[", 1), Number: i >= t.Left}) // an interval has a line of its own
		}
		return all
	}
	made := table{Head: row(t.Head)}
	for _, r := range t.Rows {
		made.Rows = append(made.Rows, row(r))
	}
	return made
}

// rateRow finds what the experiment says of a sweep; nil if it says nothing.
func rateRow(results *experiment.Results, v *variant) *experiment.RateRow {
	if results == nil || results.Sensitivity == nil {
		return nil
	}
	i := slices.IndexFunc(results.Combinations, func(c experiment.Summary) bool { return c.ID == v.id })
	if i < 0 {
		return nil
	}
	rest := maps.Clone(results.Combinations[i].Variants)
	for _, a := range results.Axes {
		if a.Key == experiment.RateKey {
			delete(rest, a.Name)
		}
	}
	j := slices.IndexFunc(results.Sensitivity.Rows, func(r experiment.RateRow) bool { return maps.Equal(r.Variants, rest) })
	if j < 0 {
		return nil
	}
	return &results.Sensitivity.Rows[j]
}
