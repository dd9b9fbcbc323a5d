// Package build turns the GLSL in shaders/ into the binaries and the manifest beside it, and tells when those are stale.
package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Variant is one kernel to compile: a source file, and the macros that it is compiled with.
type Variant struct {
	Name    string
	Source  string   // file name
	Defines []string // NAME=VALUE
	Newer   int      // the least glslang that compiles it; 0: any
}

// Variants lists the kernels of a folder of GLSL, sorted by name. A source file is one kernel of its own name, unless it has lines
//
//	//! kernel NAME MACRO=VALUE...
//
// each of which is one. A line
//
//	//! glslang N
//
// says that compilers older than glslang N do not know what the kernels use.
func Variants(dir string) ([]Variant, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.comp"))
	if err != nil {
		return nil, err
	}
	var all []Variant
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		source := filepath.Base(file)
		found := false
		newer := 0
		if m := glslang.FindSubmatch(text); m != nil {
			if newer, err = strconv.Atoi(string(m[1])); err != nil {
				return nil, fmt.Errorf("%s: %w", source, err)
			}
		}
		for line := range strings.Lines(string(text)) {
			words, ok := strings.CutPrefix(strings.TrimSpace(line), "//! kernel ")
			if !ok {
				continue
			}
			f := strings.Fields(words)
			if len(f) < 1 {
				return nil, fmt.Errorf("%s: a kernel line without a name", source)
			}
			all = append(all, Variant{Name: f[0], Source: source, Defines: f[1:], Newer: newer})
			found = true
		}
		if !found {
			all = append(all, Variant{Name: strings.TrimSuffix(source, ".comp"), Source: source, Newer: newer})
		}
	}
	slices.SortFunc(all, func(a, b Variant) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(all); i++ {
		if all[i].Name == all[i-1].Name {
			return nil, fmt.Errorf("%s and %s both define kernel %s", all[i-1].Source, all[i].Source, all[i].Name)
		}
	}
	return all, nil
}

var glslang = regexp.MustCompile(`(?m)^//! glslang (\d+)$`)

var include = regexp.MustCompile(`(?m)^\s*#include\s+"([^"]+)"`)

// SourceHash covers all that decides a variant's binary except the compiler: the text of the source and of what it includes, in order, the
// macros, and the options given to the compiler and the optimiser.
func SourceHash(dir string, v Variant) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n", strings.Join(v.Defines, " "), strings.Join(compilerOptions, " "), strings.Join(optimizerOptions, " "))
	seen := map[string]bool{}
	var add func(name string) error
	add = func(name string) error {
		if seen[name] {
			return nil
		}
		seen[name] = true
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%s %d\n", name, len(text))
		h.Write(text)
		for _, m := range include.FindAllSubmatch(text, -1) {
			if err := add(string(m[1])); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	}
	if err := add(v.Source); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// BinaryHash of a compiled kernel.
func BinaryHash(spirv []byte) string {
	sum := sha256.Sum256(spirv)
	return hex.EncodeToString(sum[:])
}
