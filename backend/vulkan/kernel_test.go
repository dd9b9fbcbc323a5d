package vulkan

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/graph"
)

var smallDevice = deviceCaps{name: "small", maxGroups: [3]uint32{10, 20, 30}, maxBindBytes: 64}

func lookupTwo(name string) (shader, bool) {
	return shader{bindings: 2, pushBytes: 8, specs: 1}, name == "two"
}

func addProgram() *graph.Program {
	b := graph.NewBuilder()
	x := b.Input("x", graph.F32, 4)
	y := b.Add(x, x, nil)
	b.Output("z", b.Add(y, y, nil))
	return b.Build("adds")
}

// A lowering that does not fit its shader or the device is an error that names both, before Vulkan is asked.
func TestDispatchesAreChecked(t *testing.T) {
	good := func() dispatch {
		return dispatch{
			kernel: "two", spec: []uint32{7}, push: struct{ A, B uint32 }{1, 2}, bind: make([]*graph.Value, 2), groups: [3]uint32{10, 20, 30},
		}
	}
	b := graph.NewBuilder()
	wide := b.Input("wide", graph.F32, 17)
	for want, change := range map[string]func(*dispatch){
		"":                           func(*dispatch) {},
		"kernel one: no such shader": func(d *dispatch) { d.kernel = "one" },
		"4 bytes of push constants, the shader has 8":         func(d *dispatch) { d.push = struct{ A uint32 }{} },
		"0 bytes of push constants, the shader has 8":         func(d *dispatch) { d.push = nil },
		"push constants: ":                                    func(d *dispatch) { d.push = "text" },
		"1 bindings, the shader has 2":                        func(d *dispatch) { d.bind = d.bind[:1] },
		"2 specialization constants, the shader has 1":        func(d *dispatch) { d.spec = []uint32{1, 2} },
		"[11 20 30] workgroups, the device allows 1 to [":     func(d *dispatch) { d.groups[0] = 11 },
		"[10 0 30] workgroups":                                func(d *dispatch) { d.groups[1] = 0 },
		`tensor "wide" has 68 bytes, devices bind at most 64`: func(d *dispatch) { d.bind[1] = wide },
	} {
		lower := func(*deviceCaps, *graph.Node) ([]dispatch, error) {
			d := good()
			change(&d)
			return []dispatch{d}, nil
		}
		launches, err := lowerProgram(&smallDevice, addProgram(), lower, lookupTwo)
		if want == "" {
			require.NoError(t, err)
			require.Len(t, launches, 2)
			require.Equal(t, []int{0, 1}, []int{launches[0].node, launches[1].node})
			require.Len(t, launches[0].data, 8)
			require.Equal(t, []uint32{7}, launches[0].key.constants())
			continue
		}
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "program adds: %add = add(%x, %x)")
		require.NotErrorIs(t, err, errors.ErrUnsupported)
	}
}

func TestPipelineKeysTellConstantsApart(t *testing.T) {
	a := dispatch{kernel: "k", spec: []uint32{1, 2}}
	require.Equal(t, keyOf(a), keyOf(dispatch{kernel: "k", spec: []uint32{1, 2}, push: 3, groups: [3]uint32{9, 9, 9}}))
	for _, other := range []dispatch{
		{kernel: "j", spec: a.spec}, {kernel: "k", spec: []uint32{1}}, {kernel: "k", spec: []uint32{2, 1}},
		{kernel: "k", spec: a.spec, subgroupSize: 8}, {kernel: "k", spec: a.spec, fullSubgroups: true},
	} {
		require.NotEqual(t, keyOf(a), keyOf(other))
	}
}

func TestStorageIsWholeWords(t *testing.T) {
	require.Equal(t, []int{4, 4, 4, 8}, []int{storageBytes(1), storageBytes(2), storageBytes(4), storageBytes(6)})
}
