package train

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/tasks"
)

func TestMetricsLines(t *testing.T) {
	quarter := 0.25
	want := []Metrics{
		{Step: 1, Loss: 6.25, LR: 1e-3, GradNorm: 2.5, Tokens: 1024, Elapsed: 0.5},
		{Step: 2, Loss: 1.0 / 3, ValLoss: 5.5, ValFloor: 0.75, Evaluated: true, LR: 2e-3, GradNorm: 1.5, Tokens: 2048, TokensPerSec: 2048, Seconds: 0.25, Elapsed: 1},
		{Step: 3, Loss: 1, GradNorm: 1, Tasks: []tasks.Result{{Task: "a", N: 1, Acc: 1, Chance: 0.5, Metric: tasks.Acc}, {Task: "b", N: 9, Acc: 0.5, AccNorm: &quarter, Chance: 0.25, Metric: tasks.AccNorm, Cut: 2}}, Scoring: 0.5},
	}
	var file bytes.Buffer
	for _, m := range want {
		require.NoError(t, WriteMetrics(&file, m))
	}
	lines := strings.SplitAfter(file.String(), "\n")
	require.Equal(t, `{"step":1,"loss":6.25,"lr":0.001,"grad_norm":2.5,"tokens":1024,"tokens_per_s":0,"elapsed_s":0.5}`+"\n", lines[0])
	require.Equal(t, `{"step":2,"loss":0.3333333333333333,"val_loss":5.5,"val_floor":0.75,"lr":0.002,"grad_norm":1.5,"tokens":2048,"tokens_per_s":2048,"step_s":0.25,"elapsed_s":1}`+"\n", lines[1])
	require.Contains(t, lines[2], `"tasks":[{"task":"a","n":1,"acc":1,"chance":0.5,"metric":"acc","cut":0},{"task":"b","n":9,"acc":0.5,"acc_norm":0.25,"chance":0.25,"metric":"acc_norm","cut":2}],"benchmark_average":0.625,"tasks_s":0.5}`)
	got, err := ReadMetrics(&file)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestMetricsThatAreNotFinite(t *testing.T) {
	var file bytes.Buffer
	require.NoError(t, WriteMetrics(&file, Metrics{Step: 3, Loss: math.NaN(), GradNorm: math.Inf(1)}))
	require.Contains(t, file.String(), `"loss":null`)
	require.Contains(t, file.String(), `"grad_norm":null`)
	got, err := ReadMetrics(&file)
	require.NoError(t, err)
	require.True(t, math.IsNaN(got[0].Loss))
	require.True(t, math.IsNaN(got[0].GradNorm))
	_, err = ReadMetrics(strings.NewReader("{}\nx\n"))
	require.ErrorContains(t, err, "line 2")
}

func TestThroughputIsOverAWindowWithoutPauses(t *testing.T) {
	rate := throughput{tokens: 100, began: time.Unix(990, 0)}
	now := time.Unix(1000, 0)
	require.InDelta(t, 10, rate.step(now), 1e-9, "the first step has nothing before it but its beginning")
	now = now.Add(time.Second)
	require.InDelta(t, 100, rate.step(now), 1e-9)
	now = now.Add(time.Second + 30*time.Second)
	rate.pause(30 * time.Second)
	require.InDelta(t, 100, rate.step(now), 1e-9, "the evaluation's half minute does not count")
	for range throughputWindow {
		now = now.Add(time.Second / 2)
		rate.step(now)
	}
	now = now.Add(time.Second / 2)
	require.InDelta(t, 200, rate.step(now), 1e-9, "the slow first steps have left the window")
}

// A step's own time is from the end of the one before it, where the device had both at once.
func TestStepsAreTimedBehindEachOther(t *testing.T) {
	rate := throughput{tokens: 100, began: time.Unix(990, 0)}
	now := time.Unix(1000, 0)
	var got []float64
	for _, s := range []struct {
		after       float64 // seconds to its end
		last, plain bool
	}{{9, false, true}, {2, false, true}, {0.001, true, true}, {3, false, true}, {2.5, false, true}, {8, false, false}, {1, false, true}, {2, false, true}} {
		now = now.Add(time.Duration(s.after * float64(time.Second)))
		rate.step(now)
		got = append(got, rate.alone(s.last, s.plain))
		if s.last {
			rate.pause(time.Minute)
			now = now.Add(time.Minute)
		}
	}
	require.InDeltaSlice(t, []float64{0, 2, 0, 0, 2.5, 0, 0, 2}, got, 1e-9)
}
