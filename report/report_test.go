package report

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/train"
)

// written makes the report of a folder and returns its page, after checks that hold of every report.
func written(t *testing.T, dir string) (page string, w Written) {
	t.Helper()
	r, err := Read(dir)
	require.NoError(t, err)
	w, err = r.Write(dir)
	require.NoError(t, err)
	raw, err := os.ReadFile(w.Page)
	require.NoError(t, err)
	page = string(raw)
	require.Contains(t, page, "</html>")
	// Nothing is loaded from anywhere: links lead into the page or to the figures, images are in it, and addresses name XML's vocabularies only.
	for _, m := range regexp.MustCompile(`(?i)\b(?:xlink:)?href="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		require.Regexp(t, `^(#|figures/[a-z-]+\.(svg|png|csv)$|data:image/png;base64,)`, m[1])
	}
	for _, m := range regexp.MustCompile(`https?://[^"'\s<]*`).FindAllString(page, -1) {
		require.True(t, strings.HasPrefix(m, "http://www.w3.org/"), m)
	}
	for _, outside := range []string{"src=", "@import", "url(", "fetch(", "<link", "<iframe"} {
		require.NotContains(t, page, outside)
	}
	for _, m := range regexp.MustCompile(`href="(figures/[^"]*)"`).FindAllStringSubmatch(page, -1) {
		info, err := os.Stat(filepath.Join(dir, m[1]))
		require.NoError(t, err)
		require.NotZero(t, info.Size())
	}
	svgs, err := filepath.Glob(filepath.Join(dir, FiguresFolder, "*.svg"))
	require.NoError(t, err)
	require.Len(t, svgs, w.Figures)
	for _, path := range svgs {
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		wellFormed(t, raw)
	}
	return page, w
}

func wellFormed(t *testing.T, raw []byte) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(raw)); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

func readCSV(t *testing.T, dir, name string) [][]string {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, FiguresFolder, name+".csv"))
	require.NoError(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	return rows
}

func value(t *testing.T, s string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(s, 64)
	require.NoError(t, err)
	return x
}

func TestReportOfPlacements(t *testing.T) {
	dir := t.TempDir()
	placementsRuns(t, dir)
	page, w := written(t, dir)
	require.Equal(t, 3, w.Variants)
	require.Equal(t, []string{"lr-sweep", "grad-models"}, w.Missing)
	require.Contains(t, page, "1 of 9 runs diverged (pre: 1 of 3)")
	require.Contains(t, page, "1 of 9 runs have not done their last step (peri: 1 of 3)")
	require.Contains(t, page, "the loss is not finite at step 120")
	require.Contains(t, page, "step 90 of 200")
	require.Contains(t, page, "mean and range over the seeds")
	require.Contains(t, page, "pre (2 of 3 seeds)")
	for _, c := range PaperCaveats {
		require.Contains(t, page, strings.ReplaceAll(c, "+", "&#43;"))
	}
	require.Contains(t, page, "57.51 (0.81)")

	// The mean and the range over the seeds that finished, and each other run for itself.
	var want []fake
	for seed := range uint64(3) {
		want = append(want, fake{placement: "post", seed: seed + 1, steps: 200, layers: 6, diagnose: 20})
	}
	rows := readCSV(t, dir, "loss")
	require.Equal(t, []string{"panel", "series", "step", "loss", "loss_low", "loss_high"}, rows[0])
	found := map[string]int{}
	for _, r := range rows[1:] {
		found[r[1]]++
		if r[1] != "post" || r[2] != "77" {
			continue
		}
		var list []float64
		for _, f := range want {
			list = append(list, f.lines()[76].Loss)
		}
		require.InDelta(t, mean(list), value(t, r[3]), 1e-12)
		require.Equal(t, min(list[0], list[1], list[2]), value(t, r[4]))
		require.Equal(t, largest(list), value(t, r[5]))
	}
	require.Equal(t, map[string]int{"post": 200, "pre": 200, "peri": 200, "pre, seed 3, diverged": 120, "peri, seed 2, unfinished": 90}, found)

	// A heat map has a row a layer and a column a diagnosed step.
	rows = readCSV(t, dir, "grad-heat")
	require.Equal(t, []string{"panel", "step", "layer", "grad_norm"}, rows[0])
	require.Len(t, rows, 1+3*6*11)
	require.Equal(t, []string{"post", "1", "1"}, rows[1][:3])
	sum := 0.0
	for _, f := range want {
		sum += float64(f.lines()[0].Diagnosis.Layers[0].GradNorm)
	}
	require.InDelta(t, sum/3, value(t, rows[1][3]), 1e-12)
}

func TestReportOfASweep(t *testing.T) {
	dir := t.TempDir()
	for _, p := range []string{"pre", "peri"} {
		for i, lr := range []float64{1e-3, 1e-2, 1e-1} {
			f := fake{name: fmt.Sprintf("%s-%g", p, lr), placement: p, lr: lr, seed: 1, steps: 60, layers: 2}
			if p == "pre" && i == 2 {
				f.diverges = 30
			}
			f.write(t, dir)
		}
	}
	page, w := written(t, dir)
	require.Equal(t, 6, w.Variants)
	require.Contains(t, page, "There is one seed of each variant")
	loss := func(p string, lr float64) float64 {
		lines := fake{placement: p, lr: lr, seed: 1, steps: 60}.lines()
		return lines[len(lines)-1].ValLoss
	}
	initial := fake{placement: "pre", lr: 1e-1, seed: 1, steps: 60}.lines()[0].Loss
	best := loss("pre", 1e-2)
	pre := (loss("pre", 1e-3)+best+initial)/3 - best
	require.Contains(t, page, fmt.Sprintf("pre: sensitivity %.3f, best loss %.3f at 0.01", pre, best))
	rows := readCSV(t, dir, "lr-sweep")
	require.Equal(t, []string{"panel", "series", "lr", "loss"}, rows[0])
	require.Equal(t, []string{"", "pre, diverged", "0.1", strconv.FormatFloat(initial, 'g', -1, 64)}, rows[len(rows)-1])
}

func TestReportOfOneRunWithoutADiagnosis(t *testing.T) {
	dir := fake{name: "run", placement: "peri", seed: 4, steps: 30, layers: 2}.write(t, t.TempDir())
	require.NoError(t, os.MkdirAll(filepath.Join(dir, FiguresFolder), 0o777))
	write(t, filepath.Join(dir, FiguresFolder), "gains.svg", "of an earlier report")
	page, w := written(t, dir)
	require.Equal(t, 3, w.Figures)
	require.NoFileExists(t, filepath.Join(dir, FiguresFolder, "gains.svg"))
	require.Contains(t, page, "No run has a diagnosed step")
	require.NotContains(t, page, "one seed of each variant")
}

// Runs as they may be found while or after something went wrong: each gives a report that says so.
func TestReportOfOddRuns(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		says   []string
	}{
		"no step yet": {func(t *testing.T, dir string) { write(t, dir, train.MetricsFile, "") }, []string{"step 0 of 30", "No run has a step yet."}},
		"no step, no config": {func(t *testing.T, dir string) {
			write(t, dir, train.MetricsFile, "")
			require.NoError(t, os.Remove(filepath.Join(dir, train.SettingsFile)))
		}, []string{"no step yet", "the config can&#39;t be read"}},
		"being written": {func(t *testing.T, dir string) {
			raw, err := os.ReadFile(filepath.Join(dir, train.MetricsFile))
			require.NoError(t, err)
			write(t, dir, train.MetricsFile, string(raw[:len(raw)-9]))
		}, []string{"is not whole", "step 29 of 30"}},
		"first step is not finite": {func(t *testing.T, dir string) {
			write(t, dir, train.MetricsFile, `{"step":1,"loss":null,"lr":1,"grad_norm":null,"tokens":1,"tokens_per_s":null,"elapsed_s":0}`+"\n")
		}, []string{"the loss is not finite at step 1"}},
		"no config":                   {func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, train.SettingsFile))) }, []string{"the config can&#39;t be read"}},
		"a config of another version": {func(t *testing.T, dir string) { write(t, dir, train.SettingsFile, "no_such_key: 1\n") }, []string{"the config can&#39;t be read", "no_such_key"}},
		"empty diagnoses": {func(t *testing.T, dir string) {
			write(t, dir, train.MetricsFile, `{"step":1,"loss":2,"lr":1,"grad_norm":1,"tokens":1,"tokens_per_s":1,"elapsed_s":0,"diagnosis":{}}`+"\n"+
				`{"step":2,"loss":2,"lr":1,"grad_norm":1,"tokens":1,"tokens_per_s":1,"elapsed_s":0,"diagnosis":{"layers":[{},{}]}}`+"\n")
		}, []string{"step 2 of 30", "The norms of these runs have no gains."}},
		"nulls in a diagnosis": {func(t *testing.T, dir string) {
			write(t, dir, train.MetricsFile, `{"step":1,"loss":2,"lr":1,"grad_norm":1,"tokens":1,"tokens_per_s":1,"elapsed_s":0,"diagnosis":{"embedding":{"variance":null,"largest":[null]},`+
				`"layers":[{"self_attn":{"variance":null,"largest":[null,null]},"mlp":{"variance":null},"grad_norm":null,"attention":{"largest_logit":null},"angle":null,"gains":[{"name":"g","mean":null}]}]}}`+"\n")
		}, []string{"no number there", "not finite, or beyond any axis"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := fake{name: "run", placement: "pre", seed: 1, steps: 30, layers: 2, diagnose: 10}.write(t, t.TempDir())
			c.change(t, dir)
			page, _ := written(t, dir)
			for _, s := range c.says {
				require.Contains(t, page, s)
			}
		})
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
}

func TestReportOfWhatIsNoRun(t *testing.T) {
	dir := t.TempDir()
	_, err := Read(dir)
	require.ErrorIs(t, err, ErrNoRun)
	require.ErrorContains(t, err, dir)
	_, err = Read(filepath.Join(dir, "nowhere"))
	require.ErrorContains(t, err, "nowhere can't be read")
	_, err = Report{}.Write(dir)
	require.ErrorIs(t, err, ErrNoRun)
	for text, says := range map[string]string{"{}\nno\n{}\n": "line 2", "{\"step\":2}\n{\"step\":1}\n": "not in order"} {
		write(t, dir, train.MetricsFile, text)
		_, err = Read(dir)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, train.MetricsFile)
	}
}

func TestHostileNamesAreEscaped(t *testing.T) {
	parent := t.TempDir()
	name := `a<script>alert('1')</script>&"'` + "\u202e\n`"
	dir := fake{name: name, placement: "pre", seed: 1, steps: 10, layers: 1, diagnose: 5}.write(t, parent)
	require.NoError(t, os.Remove(filepath.Join(dir, train.SettingsFile)))
	r, err := Read(parent)
	require.NoError(t, err)
	r.Title, r.Question = name, "<img onerror=x>"
	r.Runs[0].Notes = append(r.Runs[0].Notes, "</table><b>")
	w, err := r.Write(parent)
	require.NoError(t, err)
	raw, err := os.ReadFile(w.Page)
	require.NoError(t, err)
	for _, bad := range []string{"<script>alert", "<img", "</table><b>"} {
		require.NotContains(t, string(raw), bad)
	}
}

// Runs of one config are one variant; others are told apart by what differs, and keep their looks.
func TestVariants(t *testing.T) {
	parent := t.TempDir()
	fake{name: "a", placement: "peri", seed: 2, steps: 5, layers: 1}.write(t, parent)
	fake{name: "b", placement: "peri", seed: 1, steps: 5, layers: 1}.write(t, parent)
	fake{name: "c", placement: "peri", seed: 1, steps: 5, layers: 1, lr: 0.5}.write(t, parent)
	fake{name: "d", placement: "pre", seed: 1, steps: 5, layers: 1}.write(t, parent)
	runs, _, err := ReadRuns(parent)
	require.NoError(t, err)
	nameVariants(runs)
	all := variantsOf(runs)
	var names []string
	for _, v := range all {
		names = append(names, v.name)
	}
	require.Equal(t, []string{"peri, lr=0.007", "peri, lr=0.5", "pre, lr=0.007"}, names)
	require.Equal(t, []uint64{1, 2}, []uint64{all[0].runs[0].Seed, all[0].runs[1].Seed})

	// a damaged run is told of beside others, and is an error alone
	broken := filepath.Join(parent, "b", train.MetricsFile)
	require.NoError(t, os.WriteFile(broken, []byte("{\"step\": 1,\n"), 0o666))
	r, err := Read(parent)
	require.NoError(t, err)
	require.Len(t, r.Runs, 3)
	require.Contains(t, strings.Join(r.Notes, "\n"), "Left out, for it is damaged: "+broken+": metrics, line 1: ")
	_, err = Read(filepath.Join(parent, "b"))
	require.ErrorContains(t, err, broken+": metrics, line 1: ")

	runs, _, err = ReadRuns(filepath.Join(parent, "d"))
	require.NoError(t, err)
	nameVariants(runs)
	all = variantsOf(runs)
	groupsOf(all, nil)
	require.Equal(t, "pre", all[0].name)
	require.Equal(t, PlacementColor("pre"), all[0].style.Hex())
}

func TestDivergence(t *testing.T) {
	line := func(step int, loss, grad float64) train.Metrics {
		return train.Metrics{Step: step, Loss: loss, GradNorm: grad}
	}
	val := func(step int, loss float64) train.Metrics {
		return train.Metrics{Step: step, Loss: 1, GradNorm: 1, Evaluated: true, ValLoss: loss}
	}
	skipped := line(2, 2, math.Inf(1))
	skipped.Skipped = true
	for says, lines := range map[string][]train.Metrics{
		"": {line(1, 3, 1), skipped, line(3, 2, 1)}, "the loss is not finite at step 2": {line(1, 3, 1), line(2, math.NaN(), 1)},
		"the gradient norm is not finite at step 1": {line(1, 3, math.Inf(1))}, "the validation loss is not finite at step 1": {val(1, math.NaN())},
		"the last validation loss, 3, is over the first, 2": {val(1, 2), val(2, 3)}, "the last training loss, 3, is over the first, 2": {line(1, 2, 1), line(2, 3, 1)},
	} {
		require.Equal(t, says, divergence(lines))
	}
}

// Each row's average is that of its tasks, as the paper has rounded it.
func TestPaperTable(t *testing.T) {
	for _, r := range PaperTable {
		require.InDelta(t, mean(r.Mean[:]), r.Average, 0.0151, "%s %s", r.Size, r.Placement)
	}
}

func TestBinsAreMeans(t *testing.T) {
	p := points{[]float64{1, 2, 3, 4, 5}, []float64{1, 3, 5, 7, 9}}
	require.Equal(t, points{[]float64{2, 4, 5}, []float64{2, 6, 9}}, p.binned(2))
	require.Equal(t, p, p.binned(1))
}
