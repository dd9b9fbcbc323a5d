package report

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/internal/chart"
)

// matrix has a variant for each combination of the axes' values, the last axis changing the fastest.
func matrix(axes ...[]choice) []*variant {
	all := []*variant{{}}
	for _, values := range axes {
		var next []*variant
		for _, v := range all {
			for _, c := range values {
				next = append(next, &variant{choices: append(append([]choice(nil), v.choices...), c)})
			}
		}
		all = next
	}
	for _, v := range all {
		v.name = labelOf(v.choices)
		v.id, v.short = v.name, v.name
	}
	return all
}

func values(axis string, list ...string) (all []choice) {
	for _, s := range list {
		all = append(all, choice{axis, s})
	}
	return all
}

func titles(g groups) (all []string) {
	for _, each := range g.list {
		all = append(all, each.title)
	}
	return all
}

var (
	prePeri    = values(placementAxis, "pre", "peri")
	sevenInits = values("model.init", "10/d", "2/d", "1/d", "0.1/d", "normal_002", "xavier", "0.41/d")
)

// What is compared and placements stay side by side where they can; otherwise the fewest panels count.
func TestVariantsAreSplitByAxes(t *testing.T) {
	for _, c := range []struct {
		name     string
		all      []*variant
		compared string
		titles   []string
		legend   string
	}{
		{"four placements", matrix(values(placementAxis, "post", "pre", "peri", "olmo2")), placementAxis, []string{""}, "placement"},
		{"two by two", matrix(values("model.gain", "learnable", "frozen"), prePeri), "model.gain", []string{""}, ""},
		{"seven inits, two placements", matrix(sevenInits, prePeri), placementAxis, []string{"pre", "peri"}, "init"},
		{"three axes of two", matrix(prePeri, values("warmup", "0", "60"), values("lr", "1e-3", "5e-3")), "warmup", []string{"lr=1e-3", "lr=5e-3"}, ""},
		{"depths", matrix(values(placementAxis, "post", "pre", "peri"), values("model.n_layers", "2", "4", "8", "16", "32", "64")), placementAxis, []string{"post", "pre", "peri"}, "n_layers"},
		{"twelve numbers", matrix(values("lr", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12")), "", []string{""}, "lr"},
		{"twenty names", matrix(values("x", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t")), "",
			[]string{"variants 1 to 7 of 20", "variants 8 to 14 of 20", "variants 15 to 20 of 20"}, ""},
	} {
		g := groupsOf(c.all, map[string]string{c.compared: ""})
		require.Equal(t, c.titles, titles(g), c.name)
		require.Equal(t, c.legend, g.legend, c.name)
		require.Equal(t, c.all, g.all(), c.name)
	}
}

// However many variants there are, no panel has two lines of one look or of one name, or more than can be told apart.
func TestLooksOfAPanelDiffer(t *testing.T) {
	letters := func(axis string, n int) (all []choice) {
		for i := range n {
			all = append(all, choice{axis, fmt.Sprintf("v%c", 'a'+i)})
		}
		return all
	}
	for a := range 21 {
		for b := range 5 {
			for _, first := range [][]choice{letters("a", a+1), values(placementAxis, "post", "pre", "peri", "olmo2", "none")[:min(a, 4)+1]} {
				for _, third := range [][]choice{values("c", "1"), values("c", "1", "2", "10")} {
					all := matrix(first, letters("b", b+1), third)
					for _, each := range groupsOf(all, nil).list {
						looks, names := map[chart.Style]bool{}, map[string]bool{}
						for _, v := range each.variants {
							require.NotContains(t, looks, v.style, "%s of %d x %d x %d", v.name, len(first), b+1, len(third))
							require.NotContains(t, names, v.short)
							looks[v.style], names[v.short] = true, true
						}
						require.LessOrEqual(t, len(looks), mostOrdered)
					}
				}
			}
		}
	}
}

// A placement has its colour wherever it is one, also where only two of them are compared.
func TestPlacementsKeepTheirColours(t *testing.T) {
	for _, v := range groupsOf(matrix(values("embedding", "plain", "normed"), values(placementAxis, "peri", "pre")), nil).all() {
		require.Equal(t, PlacementColor(v.value(placementAxis)), v.style.Hex())
	}
}

// Maps of variants stand in a grid whose columns are the groups, unless groups differ in what they hold.
func TestGridOfVariants(t *testing.T) {
	list, columns := groupsOf(matrix(sevenInits, prePeri), nil).grid()
	require.Equal(t, 2, columns)
	require.Equal(t, []string{"init=10/d, pre", "init=10/d, peri", "init=2/d, pre"}, []string{list[0].name, list[1].name, list[2].name})
	all := matrix(sevenInits, prePeri)[1:]
	list, columns = groupsOf(all, nil).grid()
	require.Zero(t, columns)
	require.Equal(t, all, list)
}

// The floor is one line where the variants' texts are alike, two where they differ, and none where it is not known.
func TestFloorOfVariants(t *testing.T) {
	of := func(floors ...float64) (all []*variant) {
		for _, x := range floors {
			all = append(all, &variant{runs: []*Run{{resultFloor: x}}})
		}
		return all
	}
	levels, words := floorLevels(of(0.75, 0.76))
	require.Equal(t, []chart.Level{{Name: "floor: no model can be lower", At: 0.755}}, levels)
	require.Contains(t, words, "entropy of the validation text")
	levels, _ = floorLevels(of(0.75, 0.9, 0.8))
	require.Equal(t, 0.75, levels[0].At)
	require.Equal(t, 0.9, levels[1].At)
	levels, words = floorLevels(of(0))
	require.Empty(t, levels)
	require.Empty(t, words)
}

// Where the first diagnosed step is the last too, it is shown once.
func TestOneDiagnosedStepIsShownOnce(t *testing.T) {
	for steps, panels := range map[int]int{1: 1, 20: 2, 60: 3} { // diagnosed: the first, and each twentieth
		runs, _, err := ReadRuns(fake{name: "run", placement: "pre", seed: 1, steps: steps, layers: 2, diagnose: 20}.write(t, t.TempDir()))
		require.NoError(t, err)
		nameVariants(runs)
		require.Len(t, varianceDepthFigure(groupsOf(variantsOf(runs), nil)).chart.Panels, panels, "%d steps", steps)
	}
}
