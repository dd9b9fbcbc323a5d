package experiment

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/vktrain/vktrain/internal/near"
	"github.com/vktrain/vktrain/train"
)

// MaxSeeds bounds seeds that are given as a count.
const MaxSeeds = 1000

// maxTurns bounds cost.
const maxTurns = 10_000

// Read reads an experiment file. A *train.ConfigError names the key and the line of what cannot be.
func Read(path string) (*Experiment, error) {
	data, err := train.ReadText(path)
	if err != nil {
		return nil, err
	}
	return Parse(filepath.Base(path), data)
}

// Parse is Read of a file's content; name is for errors, and without its ending the experiment's name unless the file has one.
func Parse(name string, data []byte) (*Experiment, error) {
	body, err := train.ParseYAML(name, data)
	if err != nil {
		return nil, err
	}
	top, ok := body.(*ast.MappingNode)
	if !ok {
		return nil, badf(name, "want lines of key: value, such as axes: and seeds:")
	}
	f := &file{name: name, e: &Experiment{
		Name: strings.TrimSuffix(name, filepath.Ext(name)), Seeds: CountSeeds(1), Source: data,
	}}
	for _, v := range top.Values {
		if err := f.key(v.Key.GetToken().Value, v); err != nil {
			return nil, err
		}
	}
	return f.e, nil
}

// file is an experiment being read.
type file struct {
	name string
	e    *Experiment
}

// at is where a node was written.
func (f *file) at(n ast.Node) string { return fmt.Sprintf("%s:%d", f.name, n.GetToken().Position.Line) }

// keys are those of the file.
var keys = []string{"name", "question", "base", "axes", "only", "exclude", "seeds", "diverged", "paired_with", "metrics", "checkpoints", "cost"}

// key reads one key of the file.
func (f *file) key(key string, v *ast.MappingValueNode) (err error) {
	e, n := f.e, v.Value
	switch key {
	case "name":
		e.Name, err = f.scalar(key, n)
	case "question":
		e.Question, err = f.scalar(key, n)
	case "base":
		e.Base, err = f.settings(key, n)
	case "axes":
		err = f.axes(n)
	case "only":
		e.Only, err = f.patterns(key, n)
	case "exclude":
		e.Exclude, err = f.patterns(key, n)
	case "seeds":
		err = f.seeds(n)
	case "diverged":
		var s string
		if s, err = f.scalar(key, n); err == nil {
			if e.Diverged, err = ParseCriterion(s); err != nil {
				err = badf(f.at(n), "diverged: %v", err)
			}
		}
	case "paired_with":
		err = f.pairedWith(n)
	case "metrics":
		e.Metrics, err = f.list(key, n)
	case "checkpoints":
		var s string
		if s, err = f.scalar(key, n); err == nil && s != "true" && s != "false" {
			err = badf(f.at(n), "checkpoints: %q is no switch: use true or false", s)
		}
		e.Checkpoints = s == "true"
	case "cost":
		var s string
		if s, err = f.scalar(key, n); err == nil {
			if e.Cost, err = strconv.Atoi(s); err != nil || e.Cost < 0 || e.Cost > maxTurns {
				err = badf(f.at(n), "cost: %q is no number of turns: use 0 to %d, such as 20", s, maxTurns)
			}
		}
	default:
		hint := "there are " + strings.Join(keys, ", ")
		if meant := near.Keys(key, keys); len(meant) > 0 {
			hint = "did you mean " + strings.Join(meant, " or ") + "?"
		}
		return badf(f.at(v.Key), "unknown key %q: %s", key, hint)
	}
	return err
}

// scalar is a plain value as text.
func (f *file) scalar(key string, n ast.Node) (string, error) {
	switch n := n.(type) {
	case *ast.LiteralNode:
		return strings.TrimSpace(n.Value.Value), nil
	case *ast.MappingNode, *ast.SequenceNode, *ast.NullNode, *ast.AliasNode, *ast.AnchorNode, *ast.TagNode:
		return "", badf(f.at(n), "%s has no plain value: give one", key)
	}
	return n.GetToken().Value, nil
}

// list is a list of plain values; one alone will do.
func (f *file) list(key string, n ast.Node) ([]string, error) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		s, err := f.scalar(key, n)
		return []string{s}, err
	}
	var all []string
	for _, v := range seq.Values {
		s, err := f.scalar(key, v)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil, badf(f.at(n), "%s is an empty list: give at least one value", key)
	}
	return all, nil
}

func (f *file) mapping(key string, n ast.Node) (*ast.MappingNode, error) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return nil, badf(f.at(n), "%s: want a mapping of key: value", key)
	}
	return m, nil
}

// settings are assignments of a config.
func (f *file) settings(key string, n ast.Node) ([]train.Assignment, error) {
	switch n := n.(type) {
	case *ast.NullNode:
		return nil, nil
	case *ast.MappingNode:
		return train.Assignments(f.name, n)
	}
	return nil, badf(f.at(n), "%s: want keys of a config, such as lr: 3e-3", key)
}

func (f *file) axes(n ast.Node) error {
	m, err := f.mapping("axes", n)
	if err != nil {
		return err
	}
	for _, v := range m.Values {
		a := Axis{Name: v.Key.GetToken().Value}
		switch sub := v.Value.(type) {
		case *ast.SequenceNode:
			err = f.values(&a, sub)
		case *ast.MappingNode:
			err = f.variants(&a, sub)
		default:
			err = badf(f.at(v.Key), "axes: %s has neither a list of values nor variants: use %s: [a, b], or a mapping of names to settings", a.Name, a.Name)
		}
		if err != nil {
			return err
		}
		f.e.Axes = append(f.e.Axes, a)
	}
	return nil
}

// values reads key: [a, b].
func (f *file) values(a *Axis, n *ast.SequenceNode) error {
	a.Key = a.Name
	for _, v := range n.Values {
		s, err := f.scalar("axes: "+a.Name, v)
		if err != nil {
			return err
		}
		a.Variants = append(a.Variants, Variant{s, []train.Assignment{{Key: a.Key, Value: s, From: f.at(v)}}})
	}
	return nil
}

// variants reads name: settings.
func (f *file) variants(a *Axis, n *ast.MappingNode) error {
	for _, v := range n.Values {
		name := v.Key.GetToken().Value
		set, err := f.settings("axes: "+a.Name+": "+name, v.Value)
		if err != nil {
			return err
		}
		a.Variants = append(a.Variants, Variant{name, set})
	}
	return nil
}

// patterns reads a list of mappings of axes to variants.
func (f *file) patterns(key string, n ast.Node) ([]Pattern, error) {
	nodes := []ast.Node{n}
	if seq, ok := n.(*ast.SequenceNode); ok {
		nodes = seq.Values
	}
	var all []Pattern
	for _, n := range nodes {
		m, err := f.mapping(key, n)
		if err != nil {
			return nil, err
		}
		p := Pattern{From: f.at(n)}
		for _, v := range m.Values {
			axis := v.Key.GetToken().Value
			variants, err := f.list(key+": "+axis, v.Value)
			if err != nil {
				return nil, err
			}
			p.Axes, p.Any = append(p.Axes, axis), append(p.Any, variants)
		}
		all = append(all, p)
	}
	return all, nil
}

// seeds reads a count or a list.
func (f *file) seeds(n ast.Node) error {
	words, err := f.list("seeds", n)
	if err != nil {
		return err
	}
	var seeds []uint64
	for _, w := range words {
		s, err := strconv.ParseUint(w, 10, 64)
		if err != nil {
			return badf(f.at(n), "seeds: %q is no whole number from 0", w)
		}
		seeds = append(seeds, s)
	}
	if _, isList := n.(*ast.SequenceNode); !isList {
		if seeds[0] < 1 || seeds[0] > MaxSeeds {
			return badf(f.at(n), "seeds: a count of %d is not possible: use 1 to %d, or a list such as [%d]", seeds[0], MaxSeeds, min(seeds[0], math.MaxInt32))
		}
		seeds = CountSeeds(int(seeds[0]))
	}
	f.e.Seeds = seeds
	return nil
}

func (f *file) pairedWith(n ast.Node) error {
	m, err := f.mapping("paired_with", n)
	if err != nil {
		return err
	}
	f.e.PairedWith = map[string]string{}
	for _, v := range m.Values {
		axis := v.Key.GetToken().Value
		if f.e.PairedWith[axis], err = f.scalar("paired_with: "+axis, v.Value); err != nil {
			return err
		}
	}
	return nil
}
