package tasks_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/vktrain/vktrain/tasks"
)

// A file of one's own, scored by a stand-in for a model that likes short continuations.
func Example() {
	dir, err := os.MkdirTemp("", "tasks")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "sky.jsonl")
	text := `{"context": "The sky is", "choices": ["blue", "a large box"], "gold": 0}
{"context": "A ball is", "choices": ["flat", "round in every way"], "gold": 1}
`
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		panic(err)
	}
	list, err := tasks.Load([]string{path}, 0)
	if err != nil {
		panic(err)
	}
	for _, t := range list {
		var logLikelihoods []float64
		for _, r := range t.Requests() {
			fmt.Printf("%q after %q\n", r.Continuation, r.Context)
			logLikelihoods = append(logLikelihoods, -float64(len(r.Continuation)))
		}
		result, err := t.Score(logLikelihoods)
		if err != nil {
			panic(err)
		}
		fmt.Println(result.Task, result.Acc, result.Chance)
	}
	// Output:
	// " blue" after "The sky is"
	// " a large box" after "The sky is"
	// " flat" after "A ball is"
	// " round in every way" after "A ball is"
	// sky 0.5 0.5
}
