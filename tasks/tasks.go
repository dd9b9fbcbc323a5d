// Package tasks has multiple-choice tasks, as lm-evaluation-harness scores them (Gao et al., https://github.com/EleutherAI/lm-evaluation-harness): files become
// documents, documents become requests for the log-likelihood of a continuation after a context, and the log-likelihoods become accuracies. It knows nothing of
// models, tokenizers and devices.
//
//	list, err := tasks.Load([]string{"piqa_val.jsonl", "hellaswag_val.txt.bz2"}, 100)
//	for _, t := range list {
//		logLikelihoods := ...             // of t.Requests(), in their order
//		result, err := t.Score(logLikelihoods)
//	}
//
// # Files
//
// What a file holds shows in its content, and gzip and bzip2 do too:
//
//	{"query": "Question: Q", "choices": [...], "gold": 0}                      ARC, PIQA: "Question: Q\nAnswer:"
//	{"doc_id": 0, "doc": {"context", "question", "answerA", ..., "label"}}     SIQA: "Q: context question\nA:"; a line for each choice
//	{"doc_id": 0, "doc": {"sentence": "... _ ...", "option1", "option2", "answer"}}    WinoGrande: the text up to _ and an option, then the same rest
//	six lines of text: context, index of the right ending, four endings        HellaSwag
//	{"context": "...", "choices": [...], "gold": 0}                            any other; "contexts": [...] gives each choice its own
//
// A choice follows its context after one space.
package tasks

import (
	"fmt"
	"strings"
)

// Metric is an accuracy of a task.
type Metric string

// The accuracies: the share of documents whose right choice has the largest of its measure.
const (
	Acc     Metric = "acc"      // the log-likelihood
	AccNorm Metric = "acc_norm" // the log-likelihood over the choice's length in characters
)

// Task is the documents of a file.
type Task struct {
	Name      string // of the file: piqa_val.jsonl is piqa
	File      string
	Documents []Document
	Metric    Metric // which of its accuracies an average takes: acc_norm where the harness' standard set has that, else acc
	Norm      bool   // it has acc_norm, for its choices differ in more than their contexts
}

// Document is one question.
type Document struct {
	Contexts []string // one for all choices, or one for each
	Choices  []string // at least two, none empty
	Gold     int      // the right one
	Line     int      // of the file, from 1
}

// Request asks for the log-likelihood of a continuation.
type Request struct {
	Context      string
	Continuation string // begins with its space
	Document     int    // of the task
	Choice       int
}

// Requests are those of all documents, by document and then by choice.
func (t Task) Requests() []Request {
	var all []Request
	for i, d := range t.Documents {
		for j, choice := range d.Choices {
			context := d.Contexts[0]
			if len(d.Contexts) > 1 {
				context = d.Contexts[j]
			}
			all = append(all, Request{Context: context, Continuation: " " + choice, Document: i, Choice: j})
		}
	}
	return all
}

// At says where a request comes from: "piqa_val.jsonl:12: choice 2".
func (t Task) At(r Request) string {
	return fmt.Sprintf("%s:%d: choice %d", t.File, t.Documents[r.Document].Line, r.Choice+1)
}

// check says what of a document cannot be.
func (d Document) check() error {
	switch n := len(d.Choices); {
	case n == 0:
		return fmt.Errorf("there are no choices: give at least two")
	case n == 1:
		return fmt.Errorf("there is one choice: give at least two")
	case len(d.Contexts) != 1 && len(d.Contexts) != n:
		return fmt.Errorf("there are %d contexts for %d choices: give one for all, or one for each", len(d.Contexts), n)
	case d.Gold < 0 || d.Gold >= n:
		return fmt.Errorf("gold is %d, and the choices are 0 to %d", d.Gold, n-1)
	}
	for i, c := range d.Choices {
		if strings.TrimSpace(c) == "" {
			return fmt.Errorf("choice %d is empty: give it a text", i+1)
		}
	}
	return nil
}
