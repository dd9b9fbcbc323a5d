package build

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/vktrain/vktrain/shaders/manifest"
	"github.com/vktrain/vktrain/tools/spirv/spv"
)

// Vulkan 1.1, and so SPIR-V 1.3, is the floor.
var (
	compilerOptions  = []string{"--target-env", "vulkan1.1"}
	optimizerOptions = []string{"--target-env=vulkan1.1", "-O"}
)

// ErrNoTools says that the compiler or one of the SPIR-V tools is not installed.
var ErrNoTools = errors.New("glslangValidator (or glslc), spirv-opt and spirv-val are needed: packages glslang-tools and spirv-tools")

// NewerTools is the environment variable with a command that runs the tools of a newer toolchain: its words come before the tool's name. It is for
// the kernels that the tools on the path are too old for.
const NewerTools = "VKTRAIN_NEWER_TOOLS"

// Toolchain is the compiler, the optimiser and the validator.
type Toolchain struct {
	compiler, optimizer, validate []string // commands
	google                        bool     // the compiler is glslc
	CompilerVersion               string
	OptimizerVersion              string
	glslang                       int        // the compiler's major version; 0: it does not say
	Newer                         *Toolchain // of NewerTools, or nil
	Kept                          []string   // the kernels that All could not compile, and has as they were
	Reuse                         bool       // let All take what these tools have compiled before from the manifest
}

// FindToolchain looks the tools up, glslangValidator before glslc. The error is ErrNoTools where one is missing.
func FindToolchain() (*Toolchain, error) {
	compiler := "glslangValidator"
	if _, err := exec.LookPath(compiler); err != nil {
		compiler = "glslc"
	}
	for _, tool := range []string{compiler, "spirv-opt", "spirv-val"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, ErrNoTools
		}
	}
	t, err := toolchain(nil, compiler)
	if err != nil {
		return nil, err
	}
	if prefix := strings.Fields(os.Getenv(NewerTools)); len(prefix) > 0 {
		t.Newer, err = toolchain(prefix, "glslangValidator")
	}
	return t, err
}

func toolchain(prefix []string, compiler string) (*Toolchain, error) {
	command := func(tool string) []string { return append(slices.Clone(prefix), tool) }
	t := &Toolchain{compiler: command(compiler), optimizer: command("spirv-opt"), validate: command("spirv-val"), google: compiler == "glslc"}
	var err error
	if t.CompilerVersion, err = version(t.compiler); err != nil {
		return nil, err
	}
	if m := glslangVersion.FindStringSubmatch(t.CompilerVersion); m != nil {
		t.glslang, _ = strconv.Atoi(m[1])
	}
	t.OptimizerVersion, err = version(t.optimizer)
	return t, err
}

var glslangVersion = regexp.MustCompile(`Glslang Version: \d+:(\d+)`)

// For gives the tools that know what a kernel uses: these or the newer ones; nil if neither do.
func (t *Toolchain) For(v Variant) *Toolchain {
	for _, c := range []*Toolchain{t, t.Newer} {
		if c != nil && c.glslang >= v.Newer {
			return c
		}
	}
	return nil
}

// version is a tool's name and the first line that it says of its version.
func version(tool []string) (string, error) {
	out, err := exec.Command(tool[0], append(tool[1:], "--version")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", strings.Join(tool, " "), err)
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return tool[len(tool)-1] + ": " + strings.TrimSpace(line), nil
}

// run gives a tool's words as the error when it fails.
func run(tool []string, args ...string) error {
	var out bytes.Buffer
	cmd := exec.Command(tool[0], append(slices.Clone(tool[1:]), args...)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", tool[len(tool)-1], strings.Join(args, " "), err, out.Bytes())
	}
	return nil
}

// Compile makes a variant's binary: compiled, optimised, valid.
func (t *Toolchain) Compile(dir string, v Variant) ([]byte, error) {
	tmp, err := os.MkdirTemp("", "spirv")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	raw, optimized := filepath.Join(tmp, "raw.spv"), filepath.Join(tmp, "optimized.spv")
	args := append([]string{}, compilerOptions...)
	if t.google {
		args = append([]string{}, "--target-env=vulkan1.1", "-fshader-stage=compute")
	} else {
		args = append(args, "-V")
	}
	for _, d := range v.Defines {
		args = append(args, "-D"+d)
	}
	args = append(args, "-o", raw, filepath.Join(dir, v.Source))
	for _, step := range []struct {
		tool []string
		args []string
	}{
		{t.compiler, args},
		{t.optimizer, append(append([]string{}, optimizerOptions...), raw, "-o", optimized)},
		{t.validate, []string{"--target-env", "vulkan1.1", optimized}},
	} {
		if err := run(step.tool, step.args...); err != nil {
			return nil, fmt.Errorf("kernel %s: %w", v.Name, err)
		}
	}
	return os.ReadFile(optimized)
}

// Kernel compiles a variant and describes it.
func (t *Toolchain) Kernel(dir string, v Variant) (manifest.Kernel, error) {
	hash, err := SourceHash(dir, v)
	if err != nil {
		return manifest.Kernel{}, err
	}
	binary, err := t.Compile(dir, v)
	if err != nil {
		return manifest.Kernel{}, err
	}
	k, err := spv.Reflect(binary)
	if err != nil {
		return manifest.Kernel{}, fmt.Errorf("kernel %s: %w", v.Name, err)
	}
	if v.Newer > 0 {
		k.Compiler = t.CompilerVersion
	}
	k.Name, k.Source, k.Defines = v.Name, v.Source, v.Defines
	k.SourceHash, k.BinaryHash = hash, BinaryHash(binary)
	return k, nil
}

// All compiles every kernel of a folder, `parallel` at once. Those that need newer tools than there are stay as they are in the manifest if nothing that
// they are made of has changed.
func (t *Toolchain) All(dir string, parallel int) (*manifest.Manifest, error) {
	variants, err := Variants(dir)
	if err != nil {
		return nil, err
	}
	m := &manifest.Manifest{Compiler: t.CompilerVersion, Optimizer: t.OptimizerVersion, Kernels: make([]manifest.Kernel, len(variants))}
	errs := make([]error, len(variants))
	tools := make([]*Toolchain, len(variants))
	old, err := Read(dir)
	if err != nil {
		old = new(manifest.Manifest)
	}
	t.Kept = nil
	for i, v := range variants {
		if tools[i] = t.For(v); tools[i] != nil && t.Reuse && old.Optimizer == t.OptimizerVersion {
			if k, err := keep(dir, v, old); err == nil && BinaryHash(k.SPIRV) == k.BinaryHash && cmp.Or(k.Compiler, old.Compiler) == tools[i].CompilerVersion {
				m.Kernels[i], tools[i] = k, nil
			}
		} else if tools[i] == nil {
			if m.Kernels[i], err = keep(dir, v, old); err != nil {
				return nil, err
			}
			t.Kept = append(t.Kept, v.Name)
		}
	}
	slots := make(chan struct{}, max(parallel, 1))
	var wg sync.WaitGroup
	for i, v := range variants {
		if tools[i] == nil {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			m.Kernels[i], errs[i] = tools[i].Kernel(dir, v)
		})
	}
	wg.Wait()
	return m, errors.Join(errs...)
}

// keep takes a kernel from the manifest, with its binary.
func keep(dir string, v Variant, old *manifest.Manifest) (manifest.Kernel, error) {
	hash, err := SourceHash(dir, v)
	if err != nil {
		return manifest.Kernel{}, err
	}
	for _, k := range old.Kernels {
		if k.Name == v.Name && k.SourceHash == hash {
			k.SPIRV, err = os.ReadFile(binaryPath(dir, k.Name))
			return k, err
		}
	}
	return manifest.Kernel{}, fmt.Errorf("kernel %s: %s needs glslang %d or newer: put it on the path, or set %s to a command that runs its tools",
		v.Name, v.Source, v.Newer, NewerTools)
}

// Read loads a folder's manifest; the kernels have no binaries.
func Read(dir string) (*manifest.Manifest, error) {
	data, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		return nil, err
	}
	m := new(manifest.Manifest)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("manifest.json: %w", err)
	}
	return m, nil
}

// Write puts binaries and manifest into a folder, and removes binaries of kernels that are no more.
func Write(dir string, m *manifest.Manifest) error {
	data, err := encode(m)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "spv"), 0o755); err != nil {
		return err
	}
	keep := map[string]bool{}
	for _, k := range m.Kernels {
		keep[k.Name+".spv"] = true
		if err := os.WriteFile(binaryPath(dir, k.Name), k.SPIRV, 0o644); err != nil {
			return err
		}
	}
	old, err := os.ReadDir(filepath.Join(dir, "spv"))
	if err != nil {
		return err
	}
	for _, f := range old {
		if !keep[f.Name()] {
			if err := os.Remove(filepath.Join(dir, "spv", f.Name())); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(dir, "manifest.json"), data, 0o644)
}

// encode writes the manifest with a line for each kernel, so that a change to one shows as one line.
func encode(m *manifest.Manifest) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"compiler\": %q, \"optimizer\": %q, \"kernels\": [", m.Compiler, m.Optimizer)
	for i, k := range m.Kernels {
		line, err := json.Marshal(k)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		b.Write(line)
	}
	b.WriteString("\n]}\n")
	return b.Bytes(), nil
}

func binaryPath(dir, name string) string { return filepath.Join(dir, "spv", name+".spv") }

// Stale lists what is not up to date in a folder, one line each: a kernel without a binary, a binary without a kernel, a source that has
// changed since it was compiled, a binary that is not the one compiled, a description that is not the binary's. It needs no compiler.
func Stale(dir string) ([]string, error) {
	variants, err := Variants(dir)
	if err != nil {
		return nil, err
	}
	m, err := Read(dir)
	if err != nil {
		return nil, err
	}
	var stale []string
	report := func(name, format string, args ...any) {
		stale = append(stale, "kernel "+name+": "+fmt.Sprintf(format, args...))
	}
	byName := map[string]manifest.Kernel{}
	for _, k := range m.Kernels {
		byName[k.Name] = k
	}
	for _, v := range variants {
		k, ok := byName[v.Name]
		if !ok {
			report(v.Name, "is not in the manifest")
			continue
		}
		delete(byName, v.Name)
		hash, err := SourceHash(dir, v)
		if err != nil {
			return nil, err
		}
		if hash != k.SourceHash {
			report(v.Name, "%s or what it includes has changed since it was compiled", v.Source)
		}
		reason, err := staleBinary(dir, k)
		if err != nil {
			return nil, err
		}
		if reason != "" {
			report(v.Name, "%s", reason)
		}
	}
	for name := range byName {
		report(name, "has no source any more")
	}
	return stale, nil
}

func staleBinary(dir string, k manifest.Kernel) (string, error) {
	binary, err := os.ReadFile(binaryPath(dir, k.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return "has no binary", nil
	}
	if err != nil {
		return "", err
	}
	if BinaryHash(binary) != k.BinaryHash {
		return "the binary is not the one in the manifest", nil
	}
	r, err := spv.Reflect(binary)
	if err != nil {
		return "", fmt.Errorf("kernel %s: %w", k.Name, err)
	}
	r.Name, r.Source, r.Defines, r.SourceHash, r.BinaryHash, r.Compiler = k.Name, k.Source, k.Defines, k.SourceHash, k.BinaryHash, k.Compiler
	want, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	have, err := json.Marshal(k)
	if err != nil {
		return "", err
	}
	if !bytes.Equal(want, have) {
		return "the manifest does not describe the binary", nil
	}
	return "", nil
}

// Differs compiles everything again and lists the kernels whose binaries come out otherwise. It says nothing (and compiles nothing) where the
// tools are of other versions than those that made the manifest; nor of a kernel that newer tools made, of another version than those that
// there are.
func (t *Toolchain) Differs(dir string, parallel int) ([]string, error) {
	m, err := Read(dir)
	if err != nil || m.Compiler != t.CompilerVersion || m.Optimizer != t.OptimizerVersion {
		return nil, err
	}
	fresh, err := t.All(dir, parallel)
	if err != nil {
		return nil, err
	}
	var differ []string
	old := map[string]manifest.Kernel{}
	for _, k := range m.Kernels {
		old[k.Name] = k
	}
	for _, k := range fresh.Kernels {
		if was := old[k.Name]; was.BinaryHash != k.BinaryHash && was.Compiler == k.Compiler {
			differ = append(differ, "kernel "+k.Name+": compiled again, the binary is another one")
		}
	}
	return differ, nil
}
