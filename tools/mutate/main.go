// Command mutate breaks a kernel, runs the conformance kit on the broken build, and says which case caught it: a test of the tests. A
// mutant that survives means a case is missing.
//
//	go run ./tools/mutate [-run PATTERN] [-markdown]
//
// The sources stay as they are: a mutant is compiled in a temporary folder and laid over the build with go's -overlay. It runs on the
// Vulkan driver that the tests find, and needs the shader tools.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/vktrain/vktrain/tools/spirv/build"
)

func main() {
	pattern := flag.String("run", ".", "mutants to run, a regular expression on their descriptions")
	markdown := flag.Bool("markdown", false, "print the table for docs/mutants.md")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	survivors, err := run(*pattern, *markdown)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
	if survivors > 0 {
		fmt.Fprintf(os.Stderr, "mutate: %d survived\n", survivors)
		os.Exit(1)
	}
}

func run(pattern string, markdown bool) (survivors int, err error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return 0, err
	}
	root, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	if markdown {
		fmt.Println("| what was broken | where | caught by | first message |\n| --- | --- | --- | --- |")
	}
	for _, m := range mutants {
		if !re.MatchString(m.what) {
			continue
		}
		failed, message, err := try(root, m)
		if err != nil {
			return survivors, fmt.Errorf("%s: %w", m.what, err)
		}
		caught := "**nothing**"
		if len(failed) > 0 {
			caught = fmt.Sprintf("%s (%d in all)", failed[0], len(failed))
		} else {
			survivors++
		}
		if markdown {
			fmt.Printf("| %s | `%s` | %s | %s |\n", m.what, m.file, caught, message)
		} else {
			fmt.Printf("%s\n    %s\n    caught by %s\n    %s\n", m.what, m.file, caught, message)
		}
	}
	return survivors, nil
}

// try builds a mutant and runs the kit's groups that it names.
func try(root string, m mutant) (failed []string, message string, err error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(dir)
	source, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return nil, "", err
	}
	if n := bytes.Count(source, []byte(m.old)); n != max(1, m.times) {
		return nil, "", fmt.Errorf("%s has %q %d times: the mutant is out of date", m.file, m.old, n)
	}
	broken := bytes.Replace(source, []byte(m.old), []byte(m.new), 1)
	replace := map[string]string{}
	if strings.HasSuffix(m.file, ".go") {
		path := filepath.Join(dir, filepath.Base(m.file))
		if err := os.WriteFile(path, broken, 0o666); err != nil {
			return nil, "", err
		}
		replace[filepath.Join(root, m.file)] = path
	} else if err := compileShaders(root, dir, filepath.Base(m.file), broken, replace); err != nil {
		return nil, "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, "", err
	}
	overlayPath := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayPath, overlay, 0o666); err != nil {
		return nil, "", err
	}
	cmd := exec.Command("go", "test", "-overlay", overlayPath, "-count=1", "-timeout=9m", "-v", "-run", m.test, "./backend/vulkan")
	cmd.Env = append(os.Environ(), "VKTRAIN_REQUIRE_VULKAN=1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, "", err
	}
	failed, message = failures(string(out))
	if len(failed) == 0 && (err != nil || !strings.Contains(string(out), "--- PASS")) {
		return nil, "", fmt.Errorf("the test did not run:\n%s", out)
	}
	return failed, message, nil
}

// compileShaders compiles a copy of the shaders with one file changed, and lists the results that differ.
func compileShaders(root, dir, name string, broken []byte, replace map[string]string) error {
	from, to := filepath.Join(root, "shaders"), filepath.Join(dir, "shaders")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(to, name), broken, 0o666); err != nil {
		return err
	}
	tools, err := build.FindToolchain()
	if err != nil {
		return err
	}
	manifest, err := tools.All(to, runtime.NumCPU())
	if err != nil {
		return err
	}
	if err := build.Write(to, manifest); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(to, "spv", "*"))
	if err != nil {
		return err
	}
	for _, path := range append(files, filepath.Join(to, "manifest.json")) {
		rel, err := filepath.Rel(to, path)
		if err != nil {
			return err
		}
		a, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if b, err := os.ReadFile(filepath.Join(from, rel)); err != nil || !bytes.Equal(a, b) {
			replace[filepath.Join(from, rel)] = path
		}
	}
	if len(replace) == 0 {
		return errors.New("the mutant compiles to the same binaries")
	}
	return nil
}

var failLine = regexp.MustCompile(`(?m)^\s+--- FAIL: (\S+)`)

// failures lists the failed cases, those that have no cases under them, and the first message.
func failures(out string) (cases []string, message string) {
	lines := failLine.FindAllStringSubmatch(out, -1)
	for i, l := range lines {
		if i+1 < len(lines) && strings.HasPrefix(lines[i+1][1], l[1]+"/") {
			continue
		}
		_, name, _ := strings.Cut(l[1], "/")
		cases = append(cases, name)
	}
	for l := range strings.Lines(out) {
		if _, text, ok := strings.Cut(l, ".go:"); ok && len(cases) > 0 && !strings.Contains(text, "VKTRAIN_") {
			_, text, _ = strings.Cut(text, ": ")
			return cases, strings.ReplaceAll(strings.TrimSpace(text), "|", "\\|")
		}
	}
	return cases, ""
}
