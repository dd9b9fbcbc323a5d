package shaders_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/shaders"
	"github.com/vktrain/vktrain/shaders/manifest"
)

// What Metal has for a compute function, on every Mac: Apple, "Metal Feature Set Tables".
const (
	metalBuffers     = 31
	metalThreads     = 1024
	metalThreadgroup = 32 << 10 // bytes
)

// notForMetal says why a kernel need not translate: MoltenVK lists no cooperative matrices.
func notForMetal(k manifest.Kernel) string {
	if slices.Contains(k.Capabilities, "CooperativeMatrixKHR") {
		return "spirv-cross of 2026 takes cooperative matrices from MSL 3.1 on, and none whose sizes are specialization constants"
	}
	return ""
}

// MoltenVK turns each kernel into Metal's language in this way on a Mac; 20300 is version 2.3, of macOS 11.
func TestKernelsTranslateToMetal(t *testing.T) {
	tool, err := exec.LookPath("spirv-cross")
	if err != nil {
		if os.Getenv("VKTRAIN_REQUIRE_TOOLS") != "" {
			t.Fatal("spirv-cross is not installed (package spirv-cross)")
		}
		t.Skip("spirv-cross is not installed (package spirv-cross)")
	}
	slots := make(chan struct{}, runtime.NumCPU())
	var wg sync.WaitGroup
	for _, k := range shaders.All() {
		if why := notForMetal(k); why != "" {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			out, err := exec.Command(tool, "--msl", "--msl-version", "20300", filepath.Join("spv", k.Name+".spv")).CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			} else {
				err = checkMetal(k, string(out))
			}
			if err != nil {
				t.Errorf("%s: %v", k.Name, err)
			}
		})
	}
	wg.Wait()
}

var (
	metalBuffer = regexp.MustCompile(`\[\[buffer\((\d+)\)\]\]`)
	metalShared = regexp.MustCompile(`(?m)^ *threadgroup (\w+) \w+((?:\[\d+\])*);$`)
	metalAny    = regexp.MustCompile(`(?m)^ *threadgroup [^=\n]*;$`)
	metalSizes  = map[string]int{"half": 2, "ushort": 2, "short": 2, "float": 4, "uint": 4, "int": 4, "atomic_uint": 4}
	metalVector = regexp.MustCompile(`^([a-z_]+?)([2-4]?)$`)
)

// checkMetal reads what a translated kernel takes. It is the same for every specialization: no specialization constant sets the size of an
// array or of the workgroup, which Metal's function constants could not.
func checkMetal(k manifest.Kernel, msl string) error {
	if !strings.Contains(msl, "kernel void main0(") {
		return fmt.Errorf("no kernel")
	}
	if strings.Contains(msl, "SPIRV_CROSS_CONSTANT_ID") {
		return fmt.Errorf("a specialization constant is made a macro: it sets a size")
	}
	if threads := k.LocalSize[0] * k.LocalSize[1] * k.LocalSize[2]; threads > metalThreads {
		return fmt.Errorf("%d threads, Metal has %d", threads, metalThreads)
	}
	buffers := map[string]bool{}
	for _, m := range metalBuffer.FindAllStringSubmatch(msl, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil || n >= metalBuffers || buffers[m[1]] {
			return fmt.Errorf("buffer %s is one twice, or none of Metal's %d", m[1], metalBuffers)
		}
		buffers[m[1]] = true
	}
	want := k.Bindings
	if k.PushBytes > 0 {
		want++ // push constants are a buffer there
	}
	if len(buffers) > want {
		return fmt.Errorf("%d buffers for %d bindings", len(buffers), want)
	}
	declared := metalShared.FindAllStringSubmatch(msl, -1)
	if all := metalAny.FindAllString(msl, -1); len(all) != len(declared) {
		return fmt.Errorf("cannot read the shared memory of %q", all)
	}
	shared := 0
	for _, m := range declared {
		n, err := metalBytes(msl, m[1], m[2])
		if err != nil {
			return err
		}
		shared += n
	}
	if shared < k.SharedBytes || shared > metalThreadgroup {
		return fmt.Errorf("%d bytes of threadgroup memory: Metal has %d, the manifest says %d", shared, metalThreadgroup, k.SharedBytes)
	}
	return nil
}

// metalElement is the size of a number or a vector, 0 for other types. A vector of three is as large as one of four.
func metalElement(kind string) int {
	m := metalVector.FindStringSubmatch(kind)
	if m == nil {
		return 0
	}
	return metalSizes[m[1]] * map[string]int{"": 1, "2": 2, "3": 4, "4": 4}[m[2]]
}

// metalBytes is what a variable takes, at Metal's alignment of 16.
func metalBytes(msl, kind, dims string) (int, error) {
	n := metalElement(kind)
	if fields := regexp.MustCompile(`struct ` + kind + `\s*\{([^}]*)\}`).FindStringSubmatch(msl); n == 0 && fields != nil {
		for _, f := range strings.Split(strings.TrimSpace(fields[1]), "\n") { // all of one type
			n += metalElement(strings.Fields(f)[0])
		}
	}
	if n == 0 {
		return 0, fmt.Errorf("unknown type %s in shared memory", kind)
	}
	for _, d := range strings.FieldsFunc(dims, func(r rune) bool { return r == '[' || r == ']' }) {
		by, err := strconv.Atoi(d)
		if err != nil {
			return 0, err
		}
		n *= by
	}
	return (n + 15) / 16 * 16, nil
}

func TestMetalsLimitsAreChecked(t *testing.T) {
	k := manifest.Kernel{Bindings: 1, LocalSize: [3]uint32{256, 1, 1}, SharedBytes: 32 << 10}
	msl := "kernel void main0(device A& a [[buffer(0)]])\n{\n    threadgroup float4 t[2][1024];\n}\n"
	require.NoError(t, checkMetal(k, msl))
	for what, bad := range map[string]string{
		"no kernel":                     "void main0()",
		"32784 bytes":                   strings.Replace(msl, "t[2][1024]", "t[2][1024];\n    threadgroup uint u", 1),
		"0 bytes":                       strings.Replace(msl, "    threadgroup float4 t[2][1024];\n", "", 1),
		"unknown type Tile":             strings.Replace(msl, "float4", "Tile", 1),
		"cannot read the shared memory": strings.Replace(msl, "2][1024", "N", 1),
		"none of Metal's 31":            strings.Replace(msl, "buffer(0)", "buffer(31)", 1),
		"2 buffers for 1":               strings.Replace(msl, ")\n{", ", device B& b [[buffer(1)]])\n{", 1),
		"is made a macro":               strings.Replace(msl, "1024", "SPIRV_CROSS_CONSTANT_ID_0", 1),
	} {
		require.ErrorContains(t, checkMetal(k, bad), what)
	}
	k.LocalSize[1] = 5
	require.ErrorContains(t, checkMetal(k, msl), "1280 threads")
}
