package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// Result is what came of one case.
type Result struct {
	Case
	Checks      int     `json:"checks"`                // sets of inputs of an operator, or values of a program that were compared
	Worst       float64 `json:"worst"`                 // the largest error over its bound; more than 1 fails
	Unsupported string  `json:"unsupported,omitempty"` // why the backend cannot run it
	Error       string  `json:"error,omitempty"`       // what failed
	Seconds     float64 `json:"seconds"`
}

// MarshalJSON writes an infinite ratio, of an output that is not a number, as the largest float64.
func (r Result) MarshalJSON() ([]byte, error) {
	type plain Result
	if math.IsInf(r.Worst, 1) || math.IsNaN(r.Worst) {
		r.Worst = math.MaxFloat64
	}
	return json.Marshal(plain(r))
}

// Report is what came of a check.
type Report struct {
	Device  string   `json:"device"`
	Seed    uint64   `json:"seed"`
	Seconds float64  `json:"seconds"`
	Results []Result `json:"results"`
}

// Failures are the results with an error.
func (r *Report) Failures() []Result {
	var list []Result
	for _, res := range r.Results {
		if res.Error != "" {
			list = append(list, res)
		}
	}
	return list
}

// Passed tells whether nothing failed.
func (r *Report) Passed() bool { return len(r.Failures()) == 0 }

// row sums a group up.
type row struct {
	group                              string
	cases, checks, failed, unsupported int
	worst, seconds                     float64
	worstCase                          string
}

func (r *Report) rows() []row {
	var rows []row
	for _, res := range r.Results {
		if len(rows) == 0 || rows[len(rows)-1].group != res.Group {
			rows = append(rows, row{group: res.Group})
		}
		w := &rows[len(rows)-1]
		w.cases++
		w.checks += res.Checks
		w.seconds += res.Seconds
		if res.Unsupported != "" {
			w.unsupported++
		}
		if res.Error != "" {
			w.failed++
		}
		if res.Worst > w.worst || w.worstCase == "" {
			w.worst, w.worstCase = res.Worst, res.Name
		}
	}
	return rows
}

// verdict of a row, in a word.
func (w row) verdict() string {
	switch {
	case w.failed > 0:
		return fmt.Sprintf("FAIL %d", w.failed)
	case w.unsupported > 0:
		return fmt.Sprintf("lacks %d", w.unsupported)
	}
	return "ok"
}

// WriteTo prints a table with a line per group, then what failed. Worst is the largest error as a part of its bound.
func (r *Report) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, seed %d\n\n", r.Device, r.Seed)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "group\tcases\tchecks\tworst\tin\tseconds\t")
	cases, checks := 0, 0
	for _, row := range r.rows() {
		fmt.Fprintf(t, "%s\t%d\t%d\t%.3f\t%s\t%.1f\t%s\n", row.group, row.cases, row.checks, row.worst, row.worstCase, row.seconds, row.verdict())
		cases, checks = cases+row.cases, checks+row.checks
	}
	t.Flush()
	failed := r.Failures()
	fmt.Fprintf(&b, "\n%d cases, %d checks, %.1f s: ", cases, checks, r.Seconds)
	if len(failed) == 0 {
		b.WriteString("all pass\n")
	} else {
		fmt.Fprintf(&b, "%d fail\n", len(failed))
	}
	for _, f := range failed {
		fmt.Fprintf(&b, "\n%s %s\n    %s\n", f.Group, f.Name, strings.ReplaceAll(f.Error, "\n", "\n    "))
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}
