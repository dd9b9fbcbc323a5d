package vulkan

import (
	"time"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// speed is a cautious guess of what a kind of device does in a second. It serves to cut programs into submissions, so it errs on the
// slow side: a cut costs microseconds, a tripped watchdog the run.
type speed struct{ flops, bytes float64 }

var speeds = map[backend.Kind]speed{
	backend.Discrete:   {1e12, 80e9},
	backend.Virtual:    {500e9, 40e9},
	backend.Integrated: {100e9, 10e9},
	backend.Software:   {300e6, 300e6},
}

// estimate guesses how long a node runs: its arithmetic or its memory traffic, whichever takes longer, and a launch.
func estimate(kind backend.Kind, n *graph.Node) time.Duration {
	s, ok := speeds[kind]
	if !ok {
		s = speeds[backend.Integrated]
	}
	const launch = 5e-6
	flops, bytes := graph.Cost(n)
	seconds := max(float64(flops)/s.flops, float64(bytes)/s.bytes) + launch
	return time.Duration(seconds * float64(time.Second))
}

// cut splits nodes into runs of at most limit each by the estimates; a node that takes longer is alone. It returns the first node of
// each run, so at least one entry, and none but 0 when limit is 0.
func cut(kind backend.Kind, nodes []*graph.Node, limit time.Duration) []int {
	starts := []int{0}
	var sum time.Duration
	for i, n := range nodes {
		t := estimate(kind, n)
		if limit > 0 && i > starts[len(starts)-1] && sum+t > limit {
			starts = append(starts, i)
			sum = 0
		}
		sum += t
	}
	return starts
}

// submitLimit resolves Options.SubmitLimit.
func submitLimit(o Options, kind backend.Kind) time.Duration {
	switch {
	case o.SubmitLimit < 0 || o.SubmitLimit == 0 && kind == backend.Software:
		return 0
	case o.SubmitLimit == 0:
		return DefaultSubmitLimit
	}
	return o.SubmitLimit
}
