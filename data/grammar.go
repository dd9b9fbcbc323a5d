package data

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// grammar is a set of rules as stories_grammar.go describes them, ready to write, read and measure texts.
type grammar struct {
	start sequence
	words []string // every word of BPE that it can write
	lists []list
	slots []string
}

type sequence []*node

// node is one step of a derivation: exactly one of its parts is there.
type node struct {
	words  []int // to be written, by index
	choice *choice
	slot   *slotNode
}

// choice takes alternative i with the probability weights[i]/total.
type choice struct {
	alternatives []sequence
	weights      []int
	total        int
}

// slotNode writes a form of the entry in a slot.
type slotNode struct {
	slot int
	form string
	draw int  // the list to draw the entry from first; -1: it has been drawn
	lead bool // a space before it
}

// list is a table of entries that are drawn with the same probability.
type list struct {
	name string
	rows []map[string][2][]int // form -> its words, without and with a space before the first
}

// nameForm is the form of an entry that {slot} alone writes.
const nameForm = ""

// compiler keeps what has been compiled of a grammar.
type compiler struct {
	*grammar
	rules     map[string]string
	wordIndex map[string]int
	listIndex map[string]int
	slotIndex map[string]int
	done      map[string]*choice
}

// compile makes a grammar of rules and lists. It panics on what does not follow their notation: they are part of the program.
func compile(rules map[string]string, lists map[string]storyList, start string) *grammar {
	c := &compiler{
		grammar: &grammar{}, rules: rules,
		wordIndex: map[string]int{}, listIndex: map[string]int{}, slotIndex: map[string]int{}, done: map[string]*choice{},
	}
	var names []string
	for name := range lists {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		c.listIndex[name] = i
		c.lists = append(c.lists, list{name, c.table(lists[name])})
	}
	c.start = sequence{{choice: c.rule(start, false)}}
	return c.grammar
}

// literal gives the words of a text.
func (c *compiler) literal(text string) []int {
	var words []int
	eachWord(text, func(word string) {
		i, ok := c.wordIndex[word]
		if !ok {
			i = len(c.words)
			c.wordIndex[word] = i
			c.words = append(c.words, word)
		}
		words = append(words, i)
	})
	return words
}

func (c *compiler) table(l storyList) []map[string][2][]int {
	var rows []map[string][2][]int
	forms := append([]string{nameForm}, strings.Fields(l.forms)...)
	for row := range strings.SplitSeq(l.rows, "|") {
		entry := map[string][2][]int{}
		set := func(form, text string) {
			entry[form] = [2][]int{c.literal(text), c.literal(" " + text)}
		}
		columns := strings.Split(strings.TrimSpace(row), ",")
		if len(columns) != len(forms) {
			panic(fmt.Sprintf("data: grammar: entry %q has %d columns", row, len(columns)))
		}
		for i, form := range forms {
			set(form, columns[i])
		}
		for pair := range strings.FieldsSeq(l.same) {
			form, text, _ := strings.Cut(pair, "=")
			set(form, text)
		}
		rows = append(rows, entry)
	}
	return rows
}

// rule compiles a rule as it stands behind a space (lead), or not.
func (c *compiler) rule(name string, lead bool) *choice {
	key := fmt.Sprint(name, lead)
	if done, ok := c.done[key]; ok {
		if done == nil {
			panic("data: grammar: rule " + name + " contains itself")
		}
		return done
	}
	c.done[key] = nil
	body, ok := c.rules[name]
	if !ok {
		panic("data: grammar: no rule " + name)
	}
	ch := &choice{}
	for text := range strings.SplitSeq(body, "|") {
		text, weight := strings.TrimSpace(text), 1
		if number, rest, ok := strings.Cut(text, "*"); ok {
			n, err := strconv.Atoi(number)
			if err != nil || n < 1 {
				panic("data: grammar: bad weight in " + name)
			}
			text, weight = strings.TrimSpace(rest), n
		}
		ch.alternatives = append(ch.alternatives, c.sequence(text, lead))
		ch.weights = append(ch.weights, weight)
		ch.total += weight
	}
	c.done[key] = ch
	return ch
}

// sequence compiles an alternative.
func (c *compiler) sequence(text string, lead bool) sequence {
	var seq sequence
	for text != "" {
		plain, rest, found := strings.Cut(text, "{")
		if plain != "" {
			if lead {
				plain = " " + plain
			}
			lead = found && strings.HasSuffix(plain, " ")
			if lead {
				plain = plain[:len(plain)-1]
			}
			if plain != "" {
				seq = append(seq, &node{words: c.literal(plain)})
			}
		}
		if !found {
			break
		}
		reference, after, closed := strings.Cut(rest, "}")
		if !closed {
			panic("data: grammar: no end to " + rest)
		}
		seq = append(seq, c.reference(reference, lead))
		text, lead = after, false
	}
	return seq
}

func (c *compiler) reference(text string, lead bool) *node {
	name, listName, draws := strings.Cut(text, "=")
	slot, form, _ := strings.Cut(name, ".")
	if _, isRule := c.rules[name]; isRule && !draws {
		return &node{choice: c.rule(name, lead)}
	}
	i, ok := c.slotIndex[slot]
	if !ok {
		i = len(c.slots)
		c.slotIndex[slot] = i
		c.slots = append(c.slots, slot)
	}
	n := &slotNode{slot: i, form: form, draw: -1, lead: lead}
	if draws {
		l, ok := c.listIndex[listName]
		if !ok {
			panic("data: grammar: no list " + listName)
		}
		n.draw = l
	}
	return &node{slot: n}
}

// text gives the words that the node writes for an entry of a list.
func (n *slotNode) text(g *grammar, listIndex, row int) []int {
	words, ok := g.lists[listIndex].rows[row][n.form]
	if !ok {
		panic("data: grammar: no form " + n.form + " in list " + g.lists[listIndex].name)
	}
	if n.lead {
		return words[1]
	}
	return words[0]
}
