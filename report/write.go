package report

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/vktrain/vktrain/bench"
	"github.com/vktrain/vktrain/checkpoint"
	"github.com/vktrain/vktrain/experiment"
)

// Names of what a report writes.
const (
	PageFile      = "report.html"
	FiguresFolder = "figures" // NAME.svg, NAME.png and NAME.csv of each figure
)

// Report is what [Report.Write] writes.
type Report struct {
	Title    string
	Question string // may be empty
	Runs     []Run
	Results  *experiment.Results // of the experiment that the runs are of; nil: of none
	Cost     []bench.Step        // what steps of models took by themselves; may be empty
	Notes    []string            // what a reader must know
}

// scalarDepth and scalarGain are what the scalar model shows first: deep enough for the contrast.
const (
	scalarDepth = 24
	scalarGain  = 0.5
)

//go:embed page.html
var pageHTML string

var pageTemplate = template.Must(template.Must(template.New("page").Parse(scalarHTML)).Parse(pageHTML))

// pageData is what page.html takes.
type pageData struct {
	Title, Question, Criterion string
	Reading                    string // how looks and panels tell variants apart; may be empty
	Results                    *table // the experiment's; nil: there is none
	ResultsNotes               []string
	Variants, Runs             table
	Sections                   []pageSection
	Rates                      *table
	Paper                      table
	PaperCaveats               []string
	Sizes                      string
	Cost                       []costPart
	CostNotes                  []string
	Bench                      *table // of CostFile; nil: there is none
	Scalar                     scalarData
	Warnings                   []string
	Missing                    []missing // figures that are not there
}

type pageSection struct {
	ID, Title string
	Figures   []pageFigure
}

// missing is a reason, and the titles of the figures that are not there for it.
type missing struct {
	Why    string
	Titles []string
}

type pageFigure struct {
	Name, Title, Text, Missing string
	SVG                        template.HTML
}

// Written is what [Report.Write] has written.
type Written struct {
	Page     string // its path
	Variants int
	Figures  int
	Missing  []string // names of figures that there is nothing for
}

// Write writes the page, whole in itself, and the figures beside it, each file whole or not at all.
func (r Report) Write(dir string) (w Written, err error) {
	if len(r.Runs) == 0 {
		return w, fmt.Errorf("a report needs a run: %w", ErrNoRun)
	}
	figures := filepath.Join(dir, FiguresFolder)
	if err := os.MkdirAll(figures, 0o777); err != nil {
		return w, fmt.Errorf("the report's folder can't be made: %w", err)
	}
	data, err := r.data(&w, func(name string, content []byte) error { return writeFile(filepath.Join(figures, name), content) })
	if err != nil {
		return w, err
	}
	var out bytes.Buffer
	if err := pageTemplate.ExecuteTemplate(&out, "report", data); err != nil {
		return w, err
	}
	for _, name := range w.Missing { // an earlier report may have had it
		for _, format := range []string{".svg", ".png", ".csv"} {
			if err := os.Remove(filepath.Join(figures, name+format)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return w, err
			}
		}
	}
	w.Page, w.Variants = filepath.Join(dir, PageFile), len(data.Variants.Rows)
	return w, writeFile(w.Page, out.Bytes())
}

func writeFile(path string, data []byte) error {
	return checkpoint.WriteFile(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// data makes the page's contents, hands each figure's files to save, and counts them in w.
func (r Report) data(w *Written, save func(name string, content []byte) error) (pageData, error) {
	runs := append([]Run(nil), r.Runs...)
	nameVariants(runs)
	all := variantsOf(runs)
	var compared map[string]string
	if r.Results != nil {
		compared = r.Results.PairedWith
	}
	groups := groupsOf(all, compared)
	sweeps := sweepsOf(all, r.Results)
	d := pageData{Title: r.Title, Question: r.Question, Criterion: Criterion, Reading: groups.reading, Variants: variantTable(all), Runs: runTable(all), Paper: paperTable(all), PaperCaveats: PaperCaveats,
		Sizes: sizesNote(all), Cost: costParts(r, all), CostNotes: costNotes, Warnings: append(slices.Clone(r.Notes), warnings(all)...), Rates: ratesTable(sweeps)}
	if len(r.Cost) > 0 {
		d.Bench = benchTable(r.Cost)
	}
	if r.Results != nil {
		d.Criterion, d.Results, d.ResultsNotes = r.Results.Criterion, resultsTable(r.Results, all), r.Results.Notes
		if r.Results.Sensitivity != nil {
			rates := tableOf(r.Results.RateTable())
			rates.Note = r.Results.Sensitivity.Text
			d.Rates = &rates
		}
	}
	var err error
	if d.Scalar, err = scalarSection(scalarDepth, scalarGain); err != nil {
		return d, err
	}
	parts := sections(groups, sweeps)
	made, err := makeAll(parts, save)
	if err != nil {
		return d, err
	}
	for i, s := range parts {
		section := pageSection{ID: s.id, Title: s.title}
		for _, f := range made[i] {
			if f.Missing == "" {
				section.Figures = append(section.Figures, f)
				w.Figures++
				continue
			}
			w.Missing = append(w.Missing, f.Name)
			k := slices.IndexFunc(d.Missing, func(m missing) bool { return m.Why == f.Missing })
			if k < 0 {
				k = len(d.Missing)
				d.Missing = append(d.Missing, missing{Why: f.Missing})
			}
			d.Missing[k].Titles = append(d.Missing[k].Titles, f.Title)
		}
		if len(section.Figures) > 0 || s.id == ratesSection && d.Rates != nil {
			d.Sections = append(d.Sections, section)
		}
	}
	return d, nil
}

// makeAll makes the figures of all sections, several at once, and returns them by section.
func makeAll(parts []section, save func(name string, content []byte) error) ([][]pageFigure, error) {
	made := make([][]pageFigure, len(parts))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, s := range parts {
		made[i] = make([]pageFigure, len(s.figures))
		for j, f := range s.figures {
			group.Go(func() (err error) {
				if made[i][j], err = f.make(save); err != nil {
					return fmt.Errorf("figure %s: %w", f.name, err)
				}
				return nil
			})
		}
	}
	return made, group.Wait()
}

// make draws a figure and saves its three files.
func (f figure) make(save func(name string, content []byte) error) (pageFigure, error) {
	p := pageFigure{Name: f.name, Title: f.title, Text: f.text, Missing: f.missing}
	if f.missing != "" {
		return p, nil
	}
	for _, format := range []struct {
		name string
		make func() ([]byte, error)
	}{{"svg", f.chart.SVG}, {"png", f.chart.PNG}, {"csv", f.chart.CSV}} {
		content, err := format.make()
		if err != nil {
			return p, err
		}
		if err := save(f.name+"."+format.name, content); err != nil {
			return p, err
		}
		if format.name == "svg" {
			p.SVG = inline(content, f.title)
		}
	}
	return p, nil
}

// inline is the SVG as a part of a page: without the XML's head and with the page's width. chart has escaped its texts.
func inline(svg []byte, title string) template.HTML {
	s := string(svg)
	s = s[strings.Index(s, "<svg"):]
	end := strings.IndexByte(s, '>')
	head := s[:end]
	box := head[strings.Index(head, "viewBox="):]
	box = box[:strings.IndexByte(box[len(`viewBox="`):], '"')+len(`viewBox="`)+1]
	return template.HTML(fmt.Sprintf("<svg %s role=\"img\" aria-label=\"%s\" xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\">%s", box,
		template.HTMLEscapeString(title), s[end+1:]))
}

// whose tells of which variants runs are in a state, and how many of how many.
func whose(all []*variant, s state) string {
	const most = 6
	var parts []string
	for _, v := range all {
		if n := len(v.in(s)); n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d of %d", v.name, n, len(v.runs)))
		}
	}
	if n := len(parts); n > most {
		parts = append(parts[:most], fmt.Sprintf("and of %d more variants", n-most))
	}
	return strings.Join(parts, "; ")
}

// warnings are what a reader has to know before the figures.
func warnings(all []*variant) []string {
	var diverged, unfinished, runs int
	diagnosed, single := false, true
	for _, v := range all {
		runs += len(v.runs)
		diverged += len(v.in(stateDiverged))
		unfinished += len(v.in(stateUnfinished))
		single = single && len(v.runs) == 1
		for _, r := range v.runs {
			diagnosed = diagnosed || len(r.diagnosed()) > 0
		}
	}
	var list []string
	if diverged > 0 {
		list = append(list, fmt.Sprintf("%d of %d runs diverged (%s). They are in no mean; each has a line of its own, with a cross at its end.", diverged, runs, whose(all, stateDiverged)))
	}
	if unfinished > 0 {
		list = append(list, fmt.Sprintf("%d of %d runs have not done their last step (%s). They are in no mean; each has a line of its own, with a ring at its end.", unfinished, runs, whose(all, stateUnfinished)))
	}
	if single && runs > 1 {
		list = append(list, "There is one seed of each variant: nothing here says whether a difference is larger than that between two seeds.")
	}
	if !diagnosed {
		list = append(list, "No run has a diagnosed step, so that the figures of the inside of the model are missing.")
	}
	return list
}
