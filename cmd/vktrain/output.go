package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/vktrain/vktrain/experiment"
)

// row prints an aligned pair of a name and a text.
func row(w io.Writer, name, format string, args ...any) {
	fmt.Fprintf(w, "%-10s %s\n", name, fmt.Sprintf(format, args...))
}

// table prints rows, the first of which are the headings, with aligned columns: to the left the first ones, which hold words, and to the
// right the others.
type table struct {
	left int
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer) {
	experiment.Table{Left: t.left, Head: t.rows[0], Rows: t.rows[1:]}.Text(w)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func percent(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }

func writeJSON(w io.Writer, x any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(x)
}

// progressLine writes over one line of a terminal, and nothing elsewhere; wipe takes the line away.
func progressLine(out io.Writer) (say func(format string, args ...any), wipe func()) {
	if !isTerminal(out) {
		return func(string, ...any) {}, func() {}
	}
	const clear = "\r\x1b[K"
	return func(format string, args ...any) { fmt.Fprintf(out, clear+format, args...) }, func() { fmt.Fprint(out, clear) }
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
