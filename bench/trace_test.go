package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/graph"
)

func TestATraceHasEachNode(t *testing.T) {
	steps, err := Steps(context.Background(), open(t, 2), []Model{small("pre"), small("peri")}, StepOptions{Batch: 2, SeqLen: 8, Steps: 1, Trace: true})
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, WriteTrace(&b, steps))
	var file struct {
		DisplayTimeUnit string
		TraceEvents     []struct {
			Name, Cat, Ph string
			Pid, Tid      int
			Ts, Dur       *float64
			Args          map[string]any
		}
	}
	d := json.NewDecoder(&b)
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&file))
	require.Equal(t, "ms", file.DisplayTimeUnit)
	names := map[string][]any{}
	nodes := map[int][]*graph.Node{}
	for i, s := range steps {
		require.Len(t, s.trace, 1, "a step is one program")
		nodes[i+1] = s.trace[0].program.Nodes()
	}
	next, end := map[int]int{}, map[int]float64{}
	for _, e := range file.TraceEvents {
		switch e.Ph {
		case "M":
			names[e.Name] = append(names[e.Name], e.Args["name"])
		case "X":
			i := next[e.Pid]
			next[e.Pid]++
			n := nodes[e.Pid][i]
			op, shapes := byShapes(n)
			require.Equal(t, op, e.Name)
			require.Equal(t, shapes, e.Args["shapes"])
			require.Equal(t, n.String(), e.Args["text"])
			require.EqualValues(t, i, e.Args["node"])
			require.Contains(t, e.Args, "submission")
			require.Equal(t, 1, e.Tid)
			require.GreaterOrEqual(t, *e.Ts, end[e.Pid]-1e-3, "one after the other")
			require.GreaterOrEqual(t, *e.Dur, 0.0)
			end[e.Pid] = *e.Ts + *e.Dur
		default:
			require.Fail(t, "an event of phase "+e.Ph)
		}
	}
	for pid, n := range nodes {
		require.Equal(t, len(n), next[pid])
		require.Positive(t, end[pid])
	}
	device := open(t, 2).Info().String()
	require.Equal(t, map[string][]any{
		"process_name": {"pre, " + device, "peri, " + device}, "thread_name": {"program " + steps[0].trace[0].program.Name(), "program " + steps[1].trace[0].program.Name()},
	}, names)
}

func TestADeviceWithoutATrace(t *testing.T) {
	_, err := Steps(context.Background(), blind{open(t, 1)}, []Model{small("peri")}, StepOptions{Batch: 2, SeqLen: 8, Steps: 1, Trace: true})
	require.ErrorIs(t, err, errNoTrace)
}
