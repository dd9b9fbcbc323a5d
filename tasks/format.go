package tasks

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// standardNorm are tasks for which the harness has acc_norm.
var standardNorm = map[string]bool{"arc_easy": true, "arc_challenge": true, "hellaswag": true, "openbookqa": true, "piqa": true, "sciq": true}

// record is a line of JSON of any format.
type record struct {
	Query    *string  `json:"query"`
	Context  *string  `json:"context"`
	Contexts []string `json:"contexts"`
	Choices  []string `json:"choices"`
	Gold     *int     `json:"gold"`

	Doc   *requestDoc `json:"doc"`
	DocID *int        `json:"doc_id"`
}

// requestDoc is the document of a line that holds one request of it.
type requestDoc struct {
	Sentence string `json:"sentence"` // WinoGrande's
	Option1  string `json:"option1"`
	Option2  string `json:"option2"`
	Answer   string `json:"answer"` // "1" or "2"

	Context  string `json:"context"` // SIQA's
	Question string `json:"question"`
	AnswerA  string `json:"answerA"`
	AnswerB  string `json:"answerB"`
	AnswerC  string `json:"answerC"`
	Label    string `json:"label"` // "1" to "3"
}

// format is one kind of line.
type format struct {
	name     string
	metric   Metric
	norm     bool
	is       func(record) bool
	document func(record) (Document, error)
}

// formats are those of lines of JSON.
var formats = []format{
	{"WinoGrande", Acc, false, func(r record) bool { return r.Doc != nil && r.Doc.Sentence != "" }, winoGrande},
	{"SIQA", Acc, false, func(r record) bool { return r.Doc != nil && r.Doc.Question != "" }, siqa},
	{"query, choices and gold", AccNorm, true, func(r record) bool { return r.Query != nil }, question},
	{"context, choices and gold", Acc, true, func(r record) bool { return r.Context != nil || len(r.Contexts) > 0 }, plain},
}

// unconditional is the first doc_id of SIQA's lines that ask for the choices alone, for another way of scoring.
const unconditional = 1_000_000

// readJSON reads lines of JSON, which are all of the first one's format.
func (t *Task) readJSON(lines []string) error {
	var f *format
	last := -1 // the doc_id: a document has a line for each request
	for i, text := range lines {
		if strings.TrimSpace(text) == "" {
			continue
		}
		var r record
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return t.bad(i+1, "the line is no JSON of a document: %v", err)
		}
		of := formatOf(r)
		switch {
		case of == nil:
			return t.bad(i+1, "the line has neither query, context, contexts nor a known doc: give {\"context\": \"...\", \"choices\": [...], \"gold\": 0}")
		case f == nil:
			f = of
			t.Metric, t.Norm = f.metric, f.norm
		case f != of:
			return t.bad(i+1, "the line has %s, those before it %s: keep to one format a file", of.name, f.name)
		}
		if r.Doc != nil {
			if r.DocID == nil {
				return t.bad(i+1, "there is no doc_id: give each document its number, which lines of one document share")
			}
			if *r.DocID == last || *r.DocID >= unconditional {
				continue
			}
			last = *r.DocID
		}
		d, err := f.document(r)
		if err != nil {
			return t.bad(i+1, "%v", err)
		}
		d.Line = i + 1
		if len(d.Contexts) > 1 {
			t.Norm = false
		}
		if err := t.add(d); err != nil {
			return err
		}
	}
	if len(t.Documents) == 0 {
		return fmt.Errorf("%s has no document: each of its lines is of a doc_id from %d, which asks for a choice alone", t.File, unconditional)
	}
	return nil
}

func formatOf(r record) *format {
	for i := range formats {
		if formats[i].is(r) {
			return &formats[i]
		}
	}
	return nil
}

// question is a line of ARC or PIQA: the query has "Question: " already.
func question(r record) (Document, error) {
	return chosen(r, []string{strings.TrimRight(*r.Query, "\n") + "\nAnswer:"})
}

func plain(r record) (Document, error) {
	switch {
	case r.Context == nil:
		return chosen(r, r.Contexts)
	case len(r.Contexts) > 0:
		return Document{}, errors.New("there are both context and contexts: leave one out")
	}
	return chosen(r, []string{*r.Context})
}

func chosen(r record, contexts []string) (Document, error) {
	if r.Gold == nil {
		return Document{}, errors.New("there is no gold: give the number of the right choice, from 0")
	}
	return Document{Contexts: contexts, Choices: r.Choices, Gold: *r.Gold}, nil
}

func siqa(r record) (Document, error) {
	d := r.Doc
	gold, err := answer("label", d.Label)
	return Document{Contexts: []string{fmt.Sprintf("Q: %s %s\nA:", d.Context, d.Question)}, Choices: []string{d.AnswerA, d.AnswerB, d.AnswerC}, Gold: gold}, err
}

// winoGrande scores what follows the gap after each option.
func winoGrande(r record) (Document, error) {
	d := r.Doc
	before, after, ok := strings.Cut(d.Sentence, "_")
	if !ok {
		return Document{}, errors.New("the sentence has no _ for the options")
	}
	after = strings.TrimSpace(after)
	gold, err := answer("answer", d.Answer)
	return Document{Contexts: []string{before + d.Option1, before + d.Option2}, Choices: []string{after, after}, Gold: gold}, err
}

// answer reads a number that counts from 1.
func answer(key, text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%s is %q: give the number of the right choice, from 1", key, text)
	}
	return n - 1, nil
}

// hellaSwagLines are those of one document: its context, the index of the right ending, and the endings.
const hellaSwagLines = 6

// readHellaSwag reads documents of six lines.
func (t *Task) readHellaSwag(lines []string) error {
	t.Metric, t.Norm = AccNorm, true
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	for i := 0; i < len(lines); i += hellaSwagLines {
		if n := len(lines) - i; n < hellaSwagLines {
			return t.bad(i+1, "the last document has %d lines: give JSON, or six lines for each document of HellaSwag", n)
		}
		gold, err := strconv.Atoi(strings.TrimSpace(lines[i+1]))
		if err != nil {
			return t.bad(i+2, "%.40q is not the number of an ending: give JSON, or six lines for each document of HellaSwag", lines[i+1])
		}
		d := Document{Contexts: []string{hellaSwagContext(lines[i])}, Gold: gold, Line: i + 1}
		for _, ending := range lines[i+2 : i+hellaSwagLines] {
			d.Choices = append(d.Choices, hellaSwagText(ending))
		}
		if err := t.add(d); err != nil {
			return err
		}
	}
	return nil
}

var inBrackets = regexp.MustCompile(`\[.*?\]`)

// hellaSwagText takes out what is left of WikiHow's pages, as the harness does.
func hellaSwagText(s string) string {
	s = strings.ReplaceAll(strings.TrimSpace(s), " [title]", ". ")
	return strings.ReplaceAll(inBrackets.ReplaceAllString(s, ""), "  ", " ")
}

// startOfLast finds the last sentence of a context where it begins in lower case: the data set's ctx_b.
var startOfLast = regexp.MustCompile(`[.!?]["')]* (\p{Ll}[^.!?]*)$`)

// hellaSwagContext is "{activity_label}: {ctx_a} {Ctx_b}". The file's lines have ctx_b as the data set has it, an unfinished sentence in lower case, whose first
// letter the harness makes a capital and all others small.
func hellaSwagContext(s string) string {
	s = hellaSwagText(s)
	at := startOfLast.FindStringSubmatchIndex(s)
	if at == nil {
		return s
	}
	first, n := utf8.DecodeRuneInString(s[at[2]:])
	return s[:at[2]] + string(unicode.ToUpper(first)) + strings.ToLower(s[at[2]+n:])
}
