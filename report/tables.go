package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/vktrain/vktrain/internal/chart"
	"github.com/vktrain/vktrain/tasks"
)

// cell is of a table: words, and whether they are a number, which stands to the right.
type cell struct {
	Text   string
	Number bool
	Color  string // of a mark before the text; empty: none
}

// table is rows under headings.
type table struct {
	Head []cell
	Rows [][]cell
	Note string
}

func words(s string) cell { return cell{Text: s} }

func digits(format string, x float64) cell {
	if math.IsNaN(x) {
		return cell{Text: "–", Number: true}
	}
	return cell{Text: fmt.Sprintf(format, x), Number: true}
}

func heads(left string, right ...string) []cell {
	all := []cell{words(left)}
	for _, s := range right {
		all = append(all, cell{Text: s, Number: true})
	}
	return all
}

// spread prints a mean with the sample standard deviation, if there are several numbers.
func spread(list []float64, format string) cell {
	list = slices.DeleteFunc(slices.Clone(list), func(x float64) bool { return !finite(x) })
	switch len(list) {
	case 0:
		return cell{Text: "–", Number: true}
	case 1:
		return digits(format, list[0])
	}
	m, sum := mean(list), 0.0
	for _, x := range list {
		sum += (x - m) * (x - m)
	}
	return cell{Text: fmt.Sprintf(format+" ± "+format, m, math.Sqrt(sum/float64(len(list)-1))), Number: true}
}

// losses are the final validation losses of the runs that finished.
func (v *variant) losses() []float64 {
	var all []float64
	for _, r := range v.in(stateFinished) {
		all = append(all, r.finalLoss())
	}
	return all
}

// variantTable says of each variant how its runs went.
func variantTable(all []*variant) table {
	t := table{Head: heads("variant", "runs", "finished", "diverged", "unfinished", "val loss (nats/token)", "best val loss", "last training loss"),
		Note: "Losses are means ± the sample standard deviation (divisor n - 1) over the runs that finished without diverging. Beside a count of diverged runs they are those of the others alone."}
	for _, v := range all {
		var best, last []float64
		for _, r := range v.in(stateFinished) {
			lowest := math.Inf(1)
			for _, m := range r.Lines {
				if m.Evaluated {
					lowest = min(lowest, m.ValLoss)
				}
			}
			best, last = append(best, lowest), append(last, r.Lines[len(r.Lines)-1].Loss)
		}
		count := func(n int) cell { return cell{Text: fmt.Sprint(n), Number: true} }
		t.Rows = append(t.Rows, []cell{{Text: v.name, Color: v.style.Hex()}, count(len(v.runs)), count(len(v.in(stateFinished))), count(len(v.in(stateDiverged))),
			count(len(v.in(stateUnfinished))), spread(v.losses(), "%.4f"), spread(best, "%.4f"), spread(last, "%.4f")})
	}
	return t
}

// runTable lists every run.
func runTable(all []*variant) table {
	t := table{Head: append(heads("variant", "seed", "val loss"), words("state"), words("folder"), words("notes"))}
	for _, v := range all {
		for _, r := range v.runs {
			t.Rows = append(t.Rows, []cell{{Text: v.name, Color: v.style.Hex()}, {Text: fmt.Sprint(r.Seed), Number: true}, digits("%.4f", r.finalLoss()), words(r.progress()), words(r.Dir), words(strings.Join(r.Notes, "; "))})
		}
	}
	return t
}

// paperNames are PaperTasks as package tasks names them.
var paperNames = [len(PaperTasks)]string{"arc_easy", "hellaswag", "piqa", "siqa", "winogrande"}

// benchmarks are accuracies in percent of a variant's runs that finished, by PaperTasks, and their mean over those tasks where a run has all of them.
func (v *variant) benchmarks() (of [len(PaperTasks)][]float64, averages []float64) {
	for _, r := range v.in(stateFinished) {
		var known []tasks.Result
		for _, t := range r.Lines[len(r.Lines)-1].Tasks {
			if i := slices.Index(paperNames[:], t.Task); i >= 0 {
				of[i] = append(of[i], 100*t.Main())
				known = append(known, t)
			}
		}
		if len(known) == len(PaperTasks) {
			averages = append(averages, 100*tasks.Average(known))
		}
	}
	return of, averages
}

// tasksNote says how ours were scored; nothing where no run was.
func tasksNote(all []*variant) string {
	documents := map[int]bool{}
	for _, v := range all {
		for _, r := range v.in(stateFinished) {
			for _, t := range r.Lines[len(r.Lines)-1].Tasks {
				if slices.Contains(paperNames[:], t.Task) {
					documents[t.N] = true
				}
			}
		}
	}
	if len(documents) == 0 {
		return " Ours have no accuracies: their configs have none of these in tasks.files."
	}
	counts := slices.Sorted(maps.Keys(documents))
	n := fmt.Sprint(counts[0])
	if last := counts[len(counts)-1]; last != counts[0] {
		n += fmt.Sprintf(" to %d", last)
	}
	return fmt.Sprintf(" Our accuracies: without examples, acc_norm of ARC-Easy, HellaSwag and PIQA, acc of SIQA and WinoGrande, over the first %s documents of a task; by chance 25, 25, 50, 33.33 and 50, 36.67 on average.", n)
}

// paperTable has theirs, and ours below.
func paperTable(all []*variant) table {
	head := []cell{words("size"), words("variant")}
	for _, task := range PaperTasks {
		head = append(head, cell{Text: task, Number: true})
	}
	for _, s := range []string{"average", "loss", "average after SFT"} {
		head = append(head, cell{Text: s, Number: true})
	}
	t := table{Head: head, Note: "Accuracies in percent, losses in nats per token; in brackets the spread over seeds. Theirs: table 1 of Kim et al. 2025, the loss on C4. Ours: the loss on the validation text." + tasksNote(all)}
	coloured := true // by the placement
	for _, v := range all {
		coloured = coloured && v.style.Hex() == PlacementColor(v.value(placementAxis))
	}
	for _, r := range PaperTable {
		row := []cell{words("theirs, " + r.Size), {Text: r.Placement}}
		if coloured {
			row[1].Color = PlacementColor(r.Placement)
		}
		for i := range r.Mean {
			row = append(row, cell{Text: fmt.Sprintf("%.2f (%.2f)", r.Mean[i], r.Sd[i]), Number: true})
		}
		t.Rows = append(t.Rows, append(row, digits("%.2f", r.Average), digits("%.2f", r.Loss), digits("%.2f", r.Tuned)))
	}
	for _, v := range all {
		size := "ours"
		if p := v.params(); p > 0 {
			size = "ours, " + shortCount(float64(p))
		}
		row := []cell{words(size), {Text: v.name, Color: v.style.Hex()}}
		of, averages := v.benchmarks()
		for _, list := range append(of[:], averages) {
			row = append(row, spread(list, "%.2f"))
		}
		loss := spread(v.losses(), "%.3f")
		if n := len(v.in(stateDiverged)); n > 0 {
			loss.Text += fmt.Sprintf(", %d of %d diverged", n, len(v.runs))
		}
		t.Rows = append(t.Rows, append(row, loss, cell{Text: "–", Number: true}))
	}
	return t
}

// params is how many parameters a variant's model has; 0 if that is not known.
func (v *variant) params() int {
	c := v.runs[0].Config
	if c == nil || c.Model.VocabSize == 0 {
		return 0
	}
	return c.Model.NumParams()
}

// shortCount prints 1234567 as 1.23M.
func shortCount(n float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e15, "P"}, {1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}} {
		if n >= u.size {
			return fmt.Sprintf("%.3g%s", n/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.3g", n)
}

// sizesNote says what ours were trained on.
func sizesNote(all []*variant) string {
	var parts []string
	for _, v := range all {
		c := v.runs[0].Config
		if c == nil {
			continue
		}
		text := "the built-in stories"
		if c.Data.Path != "" {
			text = c.Data.Path
		}
		s := fmt.Sprintf("%d layers of width %d, %s tokens (%d steps of %s) of %s", c.Model.NLayers, c.Model.DModel, shortCount(float64(c.Steps)*float64(c.TokensPerStep())),
			c.Steps, shortCount(float64(c.TokensPerStep())), text)
		if p := v.params(); p > 0 {
			s = shortCount(float64(p)) + " parameters, " + s
		}
		if !slices.Contains(parts, s) {
			parts = append(parts, s)
		}
	}
	const most = 4
	if n := len(parts); n > most {
		parts = append(parts[:most], fmt.Sprintf("and %d more", n-most))
	}
	if len(parts) == 0 {
		return ""
	}
	return "Ours: " + strings.Join(parts, "; ") + "."
}

// ratesTable has the sensitivity of each sweep; nil where there is none.
func ratesTable(sweeps []*sweep) *table {
	if len(sweeps) == 0 {
		return nil
	}
	t := &table{Head: heads("variant", "rates", "sensitivity (nats/token)", "best loss (nats/token)", "at learning rate")}
	for _, s := range sweeps {
		sens, best, rate, known := s.sensitivity()
		if !known {
			sens, best, rate = math.NaN(), math.NaN(), math.NaN()
		}
		t.Rows = append(t.Rows, []cell{{Text: s.name, Color: s.style.Hex()}, {Text: fmt.Sprint(len(s.variants)), Number: true}, digits("%.4f", sens), digits("%.4f", best), {Text: chart.Short(rate), Number: true}})
	}
	return t
}
