package conformance

import (
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/model"
)

// recomputeCases train the golden models that come with the kit with activations that are computed again: every value has the bits that it
// has where they are kept.
func recomputeCases() ([]testCase, error) {
	files, err := goldenFiles("")
	if err != nil {
		return nil, err
	}
	names, err := goldenNames(files)
	if err != nil {
		return nil, err
	}
	var list []testCase
	for _, name := range names {
		for _, r := range []model.Recompute{model.RecomputeAttention, model.RecomputeBlock} {
			list = append(list, testCase{Case{"recompute", fmt.Sprintf("%s of %s", r, name)}, func(b backend.Backend, _ uint64) outcome {
				return checkRecompute(b, files, name, r)
			}})
		}
	}
	return list, nil
}

func checkRecompute(b backend.Backend, files fs.FS, name string, r model.Recompute) (res outcome) {
	g, err := openGolden(files, name)
	if err != nil {
		return outcome{err: err}
	}
	defer func() { res.err = errors.Join(res.err, g.close()) }()
	kept := map[string][]float64{}
	if err := g.on(b, func(name string, x []float64) { kept[name] = x }); err != nil {
		return outcome{err: err}
	}
	g.recompute = r
	err = g.on(b, func(name string, x []float64) {
		res.checks++
		for i, want := range kept[name] {
			if math.Float64bits(x[i]) != math.Float64bits(want) {
				res.err = errors.Join(res.err, fmt.Errorf("%s[%d] is %g, and %g without recomputation", name, i, x[i], want))
				return
			}
		}
	})
	res.err = errors.Join(res.err, err)
	return res
}

// on runs the golden steps on a backend.
func (g *golden) on(b backend.Backend, see func(name string, x []float64)) error {
	s, err := g.scenario()
	if err != nil {
		return err
	}
	return s.on(b, see)
}
