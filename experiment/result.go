package experiment

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/vktrain/vktrain/checkpoint"
	"github.com/vktrain/vktrain/data"
	"github.com/vktrain/vktrain/tasks"
	"github.com/vktrain/vktrain/train"
)

// Names in an experiment's folder.
const (
	RunsFolder     = "runs"            // holds a folder for each run
	RunFile        = "result.json"     // in a run's folder, once it is finished
	ResultsFile    = "results.json"    // Results
	MarkdownFile   = "table.md"        // the table for people
	SummaryFile    = "table.csv"       // the same in full precision, a row for each combination
	RunsTableFile  = "runs.csv"        // a row for each run
	ExperimentFile = "experiment.yaml" // what was asked for
	lockFile       = ".lock"
)

// resultFormat is the version of RunFile.
const resultFormat = 1

// RunResult is what a finished run came to. Nothing in it depends on time but the time and the process' memory of Cost.
type RunResult struct {
	Format    int               `json:"format"`
	ID        string            `json:"id"`
	Seed      uint64            `json:"seed"`
	Hash      string            `json:"hash"`     // of Settings
	Settings  map[string]string `json:"settings"` // every key of the config but device, and what tells the text
	Device    string            `json:"device"`
	Precision string            `json:"precision"` // of activations on that device
	Params    int               `json:"params"`
	Vocab     int               `json:"vocab_size"`
	Steps     int               `json:"steps"` // done
	Tokens    int64             `json:"tokens"`
	Broken    *Broken           `json:"broken,omitempty"` // where something was not finite
	Figures   Figures           `json:"figures"`
	Cost      *Cost             `json:"cost,omitempty"` // nil of runs that an earlier version trained
	Tasks     []tasks.Result    `json:"tasks,omitempty"`
}

// Broken is where a run ended before its last step.
type Broken struct {
	Step int    `json:"step"`
	What string `json:"what"` // "the loss is NaN"
}

// textKey and tasksKey are the settings that tell the text of data.path and the documents of tasks.files by their content.
const (
	textKey  = "data.sha256"
	tasksKey = "tasks.sha256"
)

// settings are what a run's figures follow from, but for its device. text is the hash of the text at data.path, documents that of the tasks.
func settings(c train.Config, text, documents string) (map[string]string, error) {
	c = c.Resolve()
	c.Device = ""
	yaml, err := c.YAML()
	if err != nil {
		return nil, err
	}
	all, err := train.ParseConfig(train.SettingsFile, yaml)
	if err != nil {
		return nil, err
	}
	s := map[string]string{}
	for _, a := range all {
		s[a.Key] = a.Value
	}
	delete(s, "device")
	if text != "" {
		s[textKey] = text
	}
	if documents == "" { // results from before there were tasks stay good
		delete(s, "tasks.files")
		delete(s, "tasks.limit")
	} else {
		s[tasksKey] = documents
	}
	return s, nil
}

func hashOf(settings map[string]string) string {
	h := sha256.New()
	for _, k := range sortedKeys(settings) {
		fmt.Fprintf(h, "%q %q\n", k, settings[k])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// textHash is of the texts that a path holds; empty for the built-in corpus.
func textHash(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := data.LoadText(path)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, doc := range text.Docs {
		fmt.Fprintf(h, "%d\n%s", len(doc), doc)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// tasksHash is of the documents that a config's tasks have; empty where there are none.
func tasksHash(c train.TasksConfig) (string, error) {
	list, err := c.Load()
	if err != nil || len(list) == 0 {
		return "", err
	}
	h := sha256.New()
	for _, t := range list {
		fmt.Fprintf(h, "%q %s %t\n", t.Name, t.Metric, t.Norm)
		for _, d := range t.Documents {
			fmt.Fprintf(h, "%q %q %d\n", d.Contexts, d.Choices, d.Gold)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// changes lists the settings in which two runs differ, as "lr 0.003, now 0.01".
func changes(before, now map[string]string) string {
	var all []string
	keys := map[string]bool{}
	for k := range before {
		keys[k] = true
	}
	for k := range now {
		keys[k] = true
	}
	value := func(m map[string]string, k string) string {
		if v, ok := m[k]; ok && v != "" {
			return v
		}
		return "nothing"
	}
	for _, k := range sortedKeys(keys) {
		if before[k] != now[k] {
			all = append(all, fmt.Sprintf("%s %s, now %s", k, value(before, k), value(now, k)))
		}
	}
	const most = 3
	if n := len(all); n > most {
		all = append(all[:most], fmt.Sprintf("and %d more", n-most))
	}
	return strings.Join(all, "; ")
}

// readResult reads a run's RunFile; nil if it has none.
func readResult(dir string) (*RunResult, error) {
	path := filepath.Join(dir, RunFile)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r RunResult
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("%s is no result of a run: %w: remove it, and the run is trained again", path, err)
	}
	if r.Format != resultFormat {
		return nil, fmt.Errorf("%s has format %d, and this program reads %d: remove it, and the run is trained again", path, r.Format, resultFormat)
	}
	if r.Hash != hashOf(r.Settings) {
		return nil, fmt.Errorf("%s was changed: its hash is not that of its settings: remove it, and the run is trained again", path)
	}
	if r.Figures == nil {
		r.Figures = Figures{}
	}
	return &r, nil
}

// writeJSONFile writes a file whole or not at all.
func writeJSONFile(path string, x any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(x); err != nil {
		return err
	}
	return writeFile(path, b.Bytes())
}

// removeTemporary removes what a program that was killed has left of files that it was writing (checkpoint.WriteFile).
func removeTemporary(dir string) error {
	left, err := filepath.Glob(filepath.Join(globEscape(dir), ".*.*.????????"))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// globEscape makes a path stand for itself alone in a pattern.
func globEscape(path string) string {
	if filepath.Separator == '\\' { // where patterns have no escapes
		return path
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

func writeFile(path string, data []byte) error {
	return checkpoint.WriteFile(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}
