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

// cut splits nodes into runs of at most limit each by their times; a node that takes longer is alone. It returns the first node of
// each run, so at least one entry, and none but 0 when limit is 0.
func cut(times []time.Duration, limit time.Duration) []int {
	starts := []int{0}
	var sum time.Duration
	for i, t := range times {
		if limit > 0 && i > starts[len(starts)-1] && sum+t > limit {
			starts = append(starts, i)
			sum = 0
		}
		sum += t
	}
	return starts
}

// correct scales the nodes' times by what the parts that start at starts took. off tells whether a part that matters, one of a tenth of the
// whole or more, took twice or half of what its nodes were thought to.
func correct(times []time.Duration, starts []int, took []time.Duration) (corrected []time.Duration, off bool) {
	corrected = make([]time.Duration, len(times))
	var whole time.Duration
	for _, t := range took {
		whole += t
	}
	for part, first := range starts {
		end := len(times)
		if part+1 < len(starts) {
			end = starts[part+1]
		}
		var thought time.Duration
		for _, t := range times[first:end] {
			thought += t
		}
		if thought == 0 {
			continue
		}
		ratio := float64(took[part]) / float64(thought)
		off = off || took[part] >= whole/10 && (ratio > 2 || ratio < 0.5)
		for i := first; i < end; i++ {
			corrected[i] = time.Duration(ratio * float64(times[i]))
		}
	}
	return corrected, off
}

// submitLimit resolves Options.SubmitLimit.
func submitLimit(o Options, kind backend.Kind) time.Duration {
	switch {
	case o.SubmitLimit == 0 && o.Nice:
		return NiceSubmitLimit
	case o.SubmitLimit < 0 || o.SubmitLimit == 0 && kind == backend.Software:
		return 0
	case o.SubmitLimit == 0:
		return DefaultSubmitLimit
	}
	return o.SubmitLimit
}
