package tasks

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"
)

// Result is what a model came to on a task. The standard errors are those of a mean over documents, with the divisor n - 1; nil for one document.
type Result struct {
	Task          string   `json:"task"`
	N             int      `json:"n"` // documents
	Acc           float64  `json:"acc"`
	AccStderr     *float64 `json:"acc_stderr,omitempty"`
	AccNorm       *float64 `json:"acc_norm,omitempty"` // nil where the task has none
	AccNormStderr *float64 `json:"acc_norm_stderr,omitempty"`
	Chance        float64  `json:"chance"` // the accuracy of a choice at random
	Metric        Metric   `json:"metric"` // which of its accuracies an average takes
	Cut           int      `json:"cut"`    // requests whose context was longer than the window, and lost its beginning
}

// ErrNotFinite is in the chain of errors about log-likelihoods that are no numbers.
var ErrNotFinite = errors.New("a log-likelihood is not finite")

// Score takes the log-likelihoods of the task's requests, in nats and in their order. Of equal choices the first is taken, as by argmax.
func (t Task) Score(logLikelihoods []float64) (Result, error) {
	r := Result{Task: t.Name, N: len(t.Documents), Metric: t.Metric}
	var acc, norm float64
	choices := map[int]int{} // documents by their number of choices
	at := 0
	for _, d := range t.Documents {
		n := len(d.Choices)
		if len(logLikelihoods)-at < n {
			panic("tasks: there are fewer log-likelihoods than requests")
		}
		of := logLikelihoods[at : at+n]
		at += n
		perCharacter := make([]float64, n)
		for i, x := range of {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return r, fmt.Errorf("%s:%d: choice %d: %w", t.File, d.Line, i+1, ErrNotFinite)
			}
			perCharacter[i] = x / float64(utf8.RuneCountInString(d.Choices[i]))
		}
		acc += hit(of, d.Gold)
		norm += hit(perCharacter, d.Gold)
		choices[n]++
	}
	n := float64(r.N)
	r.Acc, r.AccStderr = acc/n, stderr(acc, r.N)
	for _, k := range slices.Sorted(maps.Keys(choices)) {
		r.Chance += float64(choices[k]) / n / float64(k)
	}
	if t.Norm {
		share := norm / n
		r.AccNorm, r.AccNormStderr = &share, stderr(norm, r.N)
	}
	return r, nil
}

// hit is 1 if gold has the largest number, else 0.
func hit(x []float64, gold int) float64 {
	best := 0
	for i := range x {
		if x[i] > x[best] {
			best = i
		}
	}
	if best == gold {
		return 1
	}
	return 0
}

// stderr is the standard error of a mean of n zeros and ones, hits of them ones: their sample standard deviation over the root of n.
func stderr(hits float64, n int) *float64 {
	if n < 2 {
		return nil
	}
	p := hits / float64(n)
	s := math.Sqrt(p * (1 - p) / float64(n-1))
	return &s
}

// Main is the accuracy that an average takes.
func (r Result) Main() float64 {
	if r.Metric == AccNorm && r.AccNorm != nil {
		return *r.AccNorm
	}
	return r.Acc
}

// Average is the benchmark average: the mean over tasks of acc_norm where the harness' standard set has it, else acc. NaN without tasks.
func Average(all []Result) float64 {
	sum := 0.0
	for _, r := range all {
		sum += r.Main()
	}
	return sum / float64(len(all))
}
