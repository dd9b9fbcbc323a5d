package train

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/vktrain/vktrain/internal/near"
)

// Assignment gives a key of the config a value, both as text: "model.d_model" and "128".
type Assignment struct {
	Key   string
	Value string
	From  string // where it was written, for errors: "config.yaml:12"; may be empty
}

// ParseAssignment reads key=value.
func ParseAssignment(s string) (Assignment, error) {
	key, value, ok := strings.Cut(s, "=")
	if key = strings.TrimSpace(key); !ok || key == "" {
		return Assignment{}, badKey("", "%q is no assignment: use key=value, such as lr=3e-3", s)
	}
	return Assignment{Key: key, Value: strings.TrimSpace(value)}, nil
}

// Load makes a config of assignments in their order: the preset that the last model.preset names, or DefaultPreset, and then
// each other key over it. A *ConfigError names the key that is unknown, and its near matches, or the value that is not possible.
func Load(assignments []Assignment) (Config, error) {
	preset, from := DefaultPreset, ""
	for _, a := range assignments {
		if a.Key == "model.preset" {
			preset, from = a.Value, a.From
		}
	}
	c, err := FromPreset(preset)
	if err != nil {
		return Config{}, located(from, err)
	}
	for _, a := range assignments {
		if err := c.Set(a.Key, a.Value); err != nil {
			return Config{}, located(a.From, err)
		}
	}
	c.Model.Preset = preset
	return c, c.Validate()
}

func located(from string, err error) error {
	var bad *ConfigError
	if from != "" && errors.As(err, &bad) {
		return &ConfigError{"", from + ": " + bad.Error()}
	}
	return err
}

// maxConfigFile is far above any config's size in bytes.
const maxConfigFile = 1 << 20

// ReadConfig reads a YAML file as assignments for [Load].
func ReadConfig(path string) ([]Assignment, error) {
	data, err := ReadText(path)
	if err != nil {
		return nil, err
	}
	return ParseConfig(filepath.Base(path), data)
}

// ReadText reads the file of a config, or of what holds configs, whole. A *ConfigError says that it can be none.
func ReadText(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, badKey("", "%s is a folder: give a file, such as %s", path, filepath.Join(path, SettingsFile))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the config can't be read: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfigFile+1))
	if err != nil {
		return nil, fmt.Errorf("the config can't be read: %w", err)
	}
	if len(data) > maxConfigFile {
		return nil, badKey("", "%s has over %d bytes: it is no config", path, maxConfigFile)
	}
	return data, nil
}

// ParseConfig is ReadConfig of a file's content; name is for errors.
func ParseConfig(name string, data []byte) ([]Assignment, error) {
	body, err := ParseYAML(name, data)
	if err != nil || body == nil {
		return nil, err
	}
	return Assignments(name, body)
}

// ParseYAML gives the one document that a file's content holds, nil where there is none; name is for errors.
func ParseYAML(name string, data []byte) (ast.Node, error) {
	file, err := parser.ParseBytes(bytes.TrimPrefix(data, []byte("\ufeff")), 0) // YAML 1.2, section 5.2: a byte order mark is no content
	if err != nil {
		msg, _, _ := strings.Cut(yaml.FormatError(err, false, false), "\n")
		return nil, badKey("", "%s: not YAML: %s", name, msg)
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			return nil, badKey("", "%s:%d: a second document: leave one, without --- between", name, doc.Body.GetToken().Position.Line)
		}
		body = doc.Body
	}
	return body, nil
}

// Assignments lists the scalars of a mapping, sections dotted; name is for errors.
func Assignments(name string, body ast.Node) ([]Assignment, error) {
	return flatten(nil, name, "", body)
}

// flatten appends the scalars below a node as assignments.
func flatten(all []Assignment, name, prefix string, n ast.Node) ([]Assignment, error) {
	at := fmt.Sprintf("%s:%d", name, n.GetToken().Position.Line)
	switch n := n.(type) {
	case *ast.MappingNode:
		var err error
		for _, v := range n.Values {
			key := prefix + v.Key.GetToken().Value
			sub := ""
			if _, isMap := v.Value.(*ast.MappingNode); isMap {
				sub = "."
			}
			if all, err = flatten(all, name, key+sub, v.Value); err != nil {
				return nil, err
			}
		}
		return all, nil
	case *ast.SequenceNode:
		if prefix != "" {
			return nil, badKey("", "%s: %s has a list: give one value", at, prefix)
		}
	case *ast.LiteralNode:
		return append(all, Assignment{prefix, n.Value.Value, at}), nil
	case *ast.NullNode, *ast.AliasNode, *ast.AnchorNode, *ast.TagNode:
		if prefix == "" {
			return all, nil
		}
		return nil, badKey("", "%s: %s has no plain value: give one, or remove the key", at, prefix)
	}
	if prefix == "" {
		return nil, badKey("", "%s: want lines of key: value", at)
	}
	return append(all, Assignment{prefix, n.GetToken().Value, at}), nil
}

// entry is a key of the config with its place in a Config.
type entry struct {
	key   string
	value reflect.Value
}

// entries lists the keys in the order of the file. model.seq_len is not among them: seq_len sets it.
func (c *Config) entries() []entry {
	var all []entry
	var walk func(prefix string, v reflect.Value)
	walk = func(prefix string, v reflect.Value) {
		for i := range v.NumField() {
			tag := v.Type().Field(i).Tag.Get("yaml")
			switch {
			case tag == ",inline":
				walk(prefix, v.Field(i))
			case v.Field(i).Kind() == reflect.Struct:
				walk(prefix+tag+".", v.Field(i))
			case prefix+tag != "model.seq_len":
				all = append(all, entry{prefix + tag, v.Field(i)})
			}
		}
	}
	walk("", reflect.ValueOf(c).Elem())
	return all
}

// Keys lists every key, sections dotted.
func Keys() []string {
	var keys []string
	for _, e := range new(Config).entries() {
		keys = append(keys, e.key)
	}
	return keys
}

// Set gives a key a value that is written as text. It does not validate what follows from it.
func (c *Config) Set(key, value string) error {
	for _, e := range c.entries() {
		if e.key == key {
			if want := setText(e.value, strings.TrimSpace(value)); want != "" {
				return badKey(key, "%q is no %s", value, want)
			}
			return nil
		}
	}
	if slices.ContainsFunc(Keys(), func(k string) bool { return strings.HasPrefix(k, key+".") }) {
		return badKey("", "%q is a section: give its keys, such as %s.%s", key, key, map[string]string{"model": "preset", "data": "path", "tasks": "files"}[key])
	}
	if meant := near.Keys(key, Keys()); len(meant) > 0 {
		return badKey("", "unknown key %q: did you mean %s?", key, orList(meant))
	}
	return badKey("", "unknown key %q: the config.yaml that a run writes shows every key", key)
}

// setText parses text into a field, or says what it should have been.
func setText(v reflect.Value, s string) (want string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Bool:
		if s != "true" && s != "false" {
			return "switch: use true or false"
		}
		v.SetBool(s == "true")
	case reflect.Int:
		n, ok := parseInt(s)
		if !ok {
			return "whole number"
		}
		v.SetInt(int64(n))
	case reflect.Uint64:
		n, err := strconv.ParseUint(strings.ReplaceAll(s, "_", ""), 10, 64)
		if err != nil {
			return "whole number from 0 to 2^64-1"
		}
		v.SetUint(n)
	case reflect.Float64:
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return "number"
		}
		v.SetFloat(f)
	}
	return ""
}

// parseInt takes 1000, 1_000 and 1e3.
func parseInt(s string) (int, bool) {
	s = strings.ReplaceAll(s, "_", "")
	if n, err := strconv.Atoi(s); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int(f), true
}

// YAML writes every key, each with a comment. Load of its assignments gives the very same config.
func (c Config) YAML() ([]byte, error) {
	var top yaml.MapSlice
	comments := yaml.CommentMap{}
	for _, e := range c.entries() {
		item := yaml.MapItem{Key: e.key, Value: e.value.Interface()}
		comments["$."+e.key] = []*yaml.Comment{yaml.LineComment(" " + keyDocs[e.key])}
		section, key, dotted := strings.Cut(e.key, ".")
		if !dotted {
			top = append(top, item)
			continue
		}
		item.Key = key
		if n := len(top); n == 0 || top[n-1].Key != section {
			top = append(top, yaml.MapItem{Key: section, Value: yaml.MapSlice{}})
		}
		last := &top[len(top)-1]
		last.Value = append(last.Value.(yaml.MapSlice), item)
	}
	return yaml.MarshalWithOptions(top, yaml.WithComment(comments))
}
