package conformance

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/conformance/reference"
)

func TestCheckReports(t *testing.T) {
	var seen []string
	total := 0
	r, err := Check(t.Context(), reference.NewBackend(), Options{Seed: 5, Only: []string{"add", "fill"}, Progress: func(done, n int, c Case) {
		require.Equal(t, len(seen), done)
		seen, total = append(seen, c.Group), n
	}})
	require.NoError(t, err)
	require.True(t, r.Passed())
	require.Len(t, seen, total+1)
	require.Equal(t, []string{"add", "fill", ""}, []string{seen[0], seen[total-1], seen[total]})
	var back Report
	raw, err := json.Marshal(r)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &back))
	require.Equal(t, *r, back)

	_, err = Check(t.Context(), reference.NewBackend(), Options{Only: []string{"nope"}})
	require.ErrorContains(t, err, `no group "nope"`)
	_, err = Check(t.Context(), reference.NewBackend(), Options{Golden: "no/such/folder"})
	require.ErrorContains(t, err, "index.json")

	ctx, cancel := context.WithCancel(context.Background())
	r, err = Check(ctx, reference.NewBackend(), Options{Only: []string{"add"}, Progress: func(done, _ int, _ Case) {
		if done == 1 {
			cancel()
		}
	}})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, r.Results, 2, "the case in progress ends")
}

func TestReportPrintsEachGroup(t *testing.T) {
	r := &Report{Device: "cpu: test", Seed: 7, Seconds: 1.25, Results: []Result{
		{Case: Case{"add", "1"}, Checks: 2, Worst: 0.25, Seconds: 0.5},
		{Case: Case{"add", "7"}, Checks: 3, Worst: 0.5, Seconds: 0.5},
		{Case: Case{"cast", "1"}, Unsupported: "no casts"},
		{Case: Case{"sum", "1"}, Checks: 1, Worst: math.Inf(1), Error: "one\ntwo"},
	}}
	var b strings.Builder
	n, err := r.WriteTo(&b)
	require.NoError(t, err)
	require.Equal(t, int64(b.Len()), n)
	require.Equal(t, `cpu: test, seed 7

group  cases  checks  worst  in  seconds  
add    2      5       0.500  7   1.0      ok
cast   1      0       0.000  1   0.0      lacks 1
sum    1      1       +Inf   1   0.0      FAIL 1

4 cases, 6 checks, 1.2 s: 1 fail

sum 1
    one
    two
`, b.String())
	raw, err := json.Marshal(r.Results[3])
	require.NoError(t, err)
	require.Contains(t, string(raw), "1.7976931348623157e+308")
}
