package experiment

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Table is a table for people.
type Table struct {
	Left int // columns, from the first, that hold words
	Head []string
	Rows [][]string
}

// Text writes aligned columns.
func (t Table) Text(w io.Writer) {
	rows := append([][]string{t.Head}, t.Rows...)
	width := make([]int, len(t.Head))
	for _, r := range rows {
		for i, cell := range r {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, r := range rows {
		var line strings.Builder
		for i, cell := range r {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line.WriteString("  ")
			}
			if i < t.Left {
				line.WriteString(cell + pad)
			} else {
				line.WriteString(pad + cell)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// Markdown writes a table of GitHub's kind.
func (t Table) Markdown(w io.Writer) {
	line := func(cells []string) {
		escaped := make([]string, len(cells))
		for i, c := range cells {
			escaped[i] = strings.ReplaceAll(c, "|", `\|`)
		}
		fmt.Fprintf(w, "| %s |\n", strings.Join(escaped, " | "))
	}
	line(t.Head)
	rule := make([]string, len(t.Head))
	for i := range rule {
		if rule[i] = "---"; i >= t.Left {
			rule[i] = "---:"
		}
	}
	line(rule)
	for _, r := range t.Rows {
		line(r)
	}
}

// absent stands for a figure that is not there.
const absent = "-"

// cell writes a spread as mean ± sd.
func (s *Spread) cell(format string) string {
	if s == nil {
		return absent
	}
	if s.SD == nil {
		return fmt.Sprintf(format, s.Mean)
	}
	if text, ok := withSpread(s.Mean, *s.SD); ok && strings.HasSuffix(format, "g") {
		return text
	}
	return fmt.Sprintf(format, s.Mean) + " ± " + fmt.Sprintf(format, *s.SD)
}

// withSpread writes a mean ± sd with two digits of the deviation, and the mean as far as these reach. It is not ok for numbers that want an exponent, and where
// the deviation is 0 or lost beside the mean.
func withSpread(mean, sd float64) (text string, ok bool) {
	size := math.Max(math.Abs(mean), sd)
	if !(sd > 1e-5*size) || !(size >= 1e-3 && size < 1e7) {
		return "", false
	}
	digits := 1 - int(math.Floor(math.Log10(sd)))
	show := func(x float64) string {
		if digits < 0 {
			unit := math.Pow10(-digits)
			x = math.Round(x/unit) * unit
		}
		s := strconv.FormatFloat(x, 'f', max(0, digits), 64)
		if strings.Trim(s, "-0.") == "" {
			s = strings.TrimPrefix(s, "-") // of a little below 0
		}
		return s
	}
	return show(mean) + " ± " + show(sd), true
}

// cell writes a difference as mean ± sd [interval].
func (d *Difference) cell(format string) string {
	if d == nil {
		return absent
	}
	signed := strings.Replace(format, "%", "%+", 1)
	text := fmt.Sprintf(signed, d.Mean)
	if d.SD != nil {
		text += " ± " + fmt.Sprintf(format, *d.SD)
	}
	if d.Interval != nil {
		text += fmt.Sprintf(" ["+signed+", "+signed+"]", d.Interval.Low, d.Interval.High)
	}
	if d.Lost > 0 {
		text += fmt.Sprintf(" (%d lost)", d.Lost)
	}
	return text
}

// difference finds a combination's.
func (r *Results) difference(metric, id string) *Difference {
	i := slices.IndexFunc(r.Differences, func(d Difference) bool { return d.Metric == metric && d.Combined == id })
	if i < 0 {
		return nil
	}
	return &r.Differences[i]
}

// Table has a row for each combination.
func (r *Results) Table() Table {
	t := Table{Left: max(1, len(r.Axes))}
	for _, a := range r.Axes {
		t.Head = append(t.Head, lastPart(a.Name))
	}
	if len(r.Axes) == 0 {
		t.Head = append(t.Head, "config")
	}
	t.Head = append(t.Head, "params", "n", "diverged")
	for _, m := range r.Metrics {
		t.Head = append(t.Head, m.Label)
	}
	compared := len(r.Differences) > 0 && len(r.Metrics) > 0
	if compared {
		t.Head = append(t.Head, "Δ "+r.Metrics[0].Label)
	}
	for _, c := range r.Combinations {
		var row []string
		for _, a := range r.Axes {
			row = append(row, c.Variants[a.Name])
		}
		if len(r.Axes) == 0 {
			row = append(row, c.ID)
		}
		row = append(row, grouped(c.Params), strconv.Itoa(c.Runs-c.Diverged), strconv.Itoa(c.Diverged))
		for _, m := range r.Metrics {
			row = append(row, c.Figures[m.Name].cell(m.Format))
		}
		if compared {
			row = append(row, r.difference(r.Metrics[0].Name, c.ID).cell(r.Metrics[0].Format))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// lastPart is a key without its section.
func lastPart(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

// RateTable has a row for each learning rate, and then the sensitivity and the best loss; a column for each combination of the other axes.
func (r *Results) RateTable() Table {
	s := r.Sensitivity
	t := Table{Left: 1, Head: []string{RateKey}}
	for _, row := range s.Rows {
		t.Head = append(t.Head, row.ID)
	}
	line := func(name string, of func(RateRow) string) {
		cells := []string{name}
		for _, row := range s.Rows {
			cells = append(cells, of(row))
		}
		t.Rows = append(t.Rows, cells)
	}
	for _, rate := range s.Rates {
		line(strconv.FormatFloat(rate, 'g', -1, 64), func(row RateRow) string {
			i := slices.IndexFunc(row.Cells, func(c RateCell) bool { return c.Rate == rate })
			if i < 0 {
				return absent
			}
			text := row.Cells[i].Loss.cell("%.4f")
			if d := row.Cells[i].Diverged; d > 0 {
				text += fmt.Sprintf(" (%d diverged)", d)
			}
			return text
		})
	}
	line("sensitivity", func(row RateRow) string { return row.Sensitivity.cell("%.4f") })
	line("best loss", func(row RateRow) string { return row.Best.cell("%.4f") })
	line("best lr", bestRates)
	if len(s.Pairs) > 0 {
		line("Δ sensitivity", func(row RateRow) string { return s.pair(row.ID).Sensitivity.cell("%.4f") })
		line("Δ best loss", func(row RateRow) string { return s.pair(row.ID).Best.cell("%.4f") })
	}
	return t
}

func (s *RateSensitivity) pair(id string) RatePair {
	for _, p := range s.Pairs {
		if p.Sensitivity.Combined == id {
			return p
		}
	}
	return RatePair{}
}

// bestRates lists the rates that were the best for some seed.
func bestRates(row RateRow) string {
	var rates []float64
	for _, s := range row.BySeed {
		rates = append(rates, s.BestRate)
	}
	slices.Sort(rates)
	var words []string
	for _, rate := range slices.Compact(rates) {
		words = append(words, strconv.FormatFloat(rate, 'g', -1, 64))
	}
	if len(words) == 0 {
		return absent
	}
	return strings.Join(words, ", ")
}

// mostDiverged is how many diverged runs stand below a table with their reasons.
const mostDiverged = 10

// lines are what stands below the tables.
func (r *Results) lines() []string {
	var lines []string
	if len(r.Differences) > 0 {
		var with []string
		for _, axis := range sortedKeys(r.PairedWith) {
			with = append(with, axis+" "+r.PairedWith[axis])
		}
		lines = append(lines, "Δ: less the same with "+strings.Join(with, ", ")+".")
	}
	lines = append(lines, r.Notes...)
	diverged := 0
	for _, run := range r.Runs {
		if run.Diverged == "" {
			continue
		}
		if diverged++; diverged <= mostDiverged {
			lines = append(lines, fmt.Sprintf("%s diverged: %s.", run.ID, run.Diverged))
		}
	}
	if more := diverged - mostDiverged; more > 0 {
		lines = append(lines, fmt.Sprintf("%s has the other %d that diverged.", RunsTableFile, more))
	}
	return lines
}

// WriteText writes the tables and how to read them for a terminal.
func (r *Results) WriteText(w io.Writer) {
	if r.Question != "" {
		fmt.Fprintf(w, "%s\n\n", r.Question)
	}
	if r.Sensitivity != nil {
		r.RateTable().Text(w)
		fmt.Fprintf(w, "\n%s\n\n", r.Sensitivity.Text)
	}
	if r.Sensitivity == nil || r.asksMoreThanLoss() {
		r.Table().Text(w)
		fmt.Fprintln(w)
	}
	for _, line := range r.lines() {
		fmt.Fprintln(w, line)
	}
}

// asksMoreThanLoss tells whether the file names metrics that are not in the table of learning rates.
func (r *Results) asksMoreThanLoss() bool {
	return slices.ContainsFunc(r.Metrics, func(m Metric) bool { return !slices.Contains(DefaultMetrics, m.Name) })
}

// Markdown is the tables and how to read them.
func (r *Results) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", r.Name)
	if r.Question != "" {
		fmt.Fprintf(&b, "%s\n\n", r.Question)
	}
	if r.Sensitivity != nil {
		r.RateTable().Markdown(&b)
		fmt.Fprintf(&b, "\n%s\n\n", r.Sensitivity.Text)
	}
	r.Table().Markdown(&b)
	fmt.Fprintln(&b)
	for _, line := range r.lines() {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	return b.String()
}

// SummaryCSV has a row for each combination, in full precision.
func (r *Results) SummaryCSV() string {
	head := []string{"combination"}
	for _, a := range r.Axes {
		head = append(head, a.Name)
	}
	head = append(head, "baseline", "params", "runs", "diverged")
	for _, m := range r.AllMetrics {
		for _, of := range []string{"n", "mean", "sd", "min", "max", "diff_n", "diff_lost", "diff_mean", "diff_sd", "diff_low", "diff_high"} {
			head = append(head, m.Name+"_"+of)
		}
	}
	rows := [][]string{head}
	for _, c := range r.Combinations {
		row := []string{c.ID}
		for _, a := range r.Axes {
			row = append(row, c.Variants[a.Name])
		}
		row = append(row, c.Baseline, strconv.Itoa(c.Params), strconv.Itoa(c.Runs), strconv.Itoa(c.Diverged))
		for _, m := range r.AllMetrics {
			row = append(row, c.Figures[m.Name].fields()...)
			row = append(row, r.difference(m.Name, c.ID).fields()...)
		}
		rows = append(rows, row)
	}
	return csvOf(rows)
}

func (s *Spread) fields() []string {
	if s == nil {
		return []string{"0", "", "", "", ""}
	}
	return []string{strconv.Itoa(s.N), exact(&s.Mean), exact(s.SD), exact(&s.Min), exact(&s.Max)}
}

func (d *Difference) fields() []string {
	if d == nil {
		return make([]string, 6)
	}
	low, high := "", ""
	if d.Interval != nil {
		low, high = exact(&d.Interval.Low), exact(&d.Interval.High)
	}
	return []string{strconv.Itoa(d.N), strconv.Itoa(d.Lost), exact(&d.Mean), exact(d.SD), low, high}
}

// RunsCSV has a row for each run, in full precision.
func (r *Results) RunsCSV() string {
	head := []string{"run", "combination"}
	for _, a := range r.Axes {
		head = append(head, a.Name)
	}
	head = append(head, "seed", "diverged", "steps", "tokens", "params", "vocab_size", "device", "precision")
	for _, m := range r.AllMetrics {
		head = append(head, m.Name)
	}
	rows := [][]string{head}
	for _, run := range r.Runs {
		row := []string{run.ID, run.Combined}
		for _, a := range r.Axes {
			row = append(row, run.Variants[a.Name])
		}
		row = append(row, strconv.FormatUint(run.Seed, 10), run.Diverged, strconv.Itoa(run.Steps), strconv.FormatInt(run.Tokens, 10), strconv.Itoa(run.Params),
			strconv.Itoa(run.Vocab), run.Device, run.Format)
		for _, m := range r.AllMetrics {
			if x, ok := run.Figures[m.Name]; ok {
				row = append(row, exact(&x))
			} else {
				row = append(row, "")
			}
		}
		rows = append(rows, row)
	}
	return csvOf(rows)
}

// exact is a number that reads back as the same.
func exact(x *float64) string {
	if x == nil {
		return ""
	}
	return strconv.FormatFloat(*x, 'g', -1, 64)
}

func csvOf(rows [][]string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.WriteAll(rows) // to memory
	return b.String()
}

// grouped prints 1234567 as 1,234,567.
func grouped(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}
