//go:build cgo

package vulkan

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
	"github.com/vktrain/vktrain/graph"
)

// Drivers have crashed in the query for cooperative matrices (AMDVLK#422), so it is made in a child process: this program again, whose
// ProbeMain answers and exits. What comes of it is kept beside the device's pipelines.

// probeVariable is set for the child: which device it is to ask.
const probeVariable = "VKTRAIN_PROBE"

const probeTimeout = 10 * time.Second // for a driver to load and to answer

// canProbe: this program calls ProbeMain when it starts.
var canProbe atomic.Bool

// ProbeMain is to be the first call of the main function of a program that wants cooperative matrices: only then may this package start the
// program again, as a child that asks a driver for them, and that ends in ProbeMain. In any other process it does nothing.
func ProbeMain() {
	which := os.Getenv(probeVariable)
	if which == "" {
		canProbe.Store(true)
		return
	}
	answer, err := askMatrices(which)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(answer)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// askMatrices is the child's part.
func askMatrices(which string) (matrixAnswer, error) {
	instance, err := newInstance(nil, false)
	if err != nil {
		return matrixAnswer{}, err
	}
	defer instance.Close()
	devices, err := physicalDevices(instance)
	if err != nil {
		return matrixAnswer{}, err
	}
	for _, d := range devices {
		if newChecksFile(Options{NoCache: true}, &d.DeviceInfo).key == which {
			shapes, err := instance.CooperativeMatrices(d.handle)
			return matrixAnswer{Shapes: usableMatrices(shapes), Names: matrixNames(shapes)}, err
		}
	}
	return matrixAnswer{}, fmt.Errorf("vulkan: %w as %s, as %s says, which is for a program's own child alone", ErrNoDevice, which, probeVariable)
}

// findMatrices fills in the shapes of cooperative matrices, from the cache or by a child process.
func (d *physicalDevice) findMatrices(opts Options) {
	f := &d.Features
	switch {
	case !d.matrixFeature || d.noMatrices:
		f.BFloat16 = false
		return
	case opts.withoutMatrices():
		withoutMatrices(&d.DeviceInfo)
		f.MatrixProblem = "they are turned off"
		return
	}
	file := newChecksFile(opts, &d.DeviceInfo)
	known := file.read()
	if known.Matrices == nil || opts.CheckAgain {
		answer, keep := probe(opts, file.key)
		known.Matrices = &answer
		if keep {
			file.write(known, d.Name)
		}
	}
	f.CooperativeMatrix, f.matrices, f.MatrixProblem = known.Matrices.Names, known.Matrices.Shapes, known.Matrices.Why
	f.BFloat16 = slices.ContainsFunc(f.matrices, func(m matrixShape) bool { return m.In == graph.BF16 })
}

// probe runs the child. Its answer is kept, and so is that the driver crashes. A child that failed by itself, was ended by somebody or was too slow
// says nothing of the driver: the next program asks again.
func probe(opts Options, which string) (answer matrixAnswer, keep bool) {
	command, err := probeCommand(opts)
	if err != nil {
		return matrixAnswer{Why: err.Error()}, false
	}
	timeout := probeTimeout
	if opts.probeTimeout > 0 {
		timeout = opts.probeTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	child := exec.CommandContext(ctx, command[0], command[1:]...)
	child.Env = append(os.Environ(), probeVariable+"="+which)
	child.WaitDelay = time.Second
	var out, said bytes.Buffer
	child.Stdout, child.Stderr = &out, &said
	err = child.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return matrixAnswer{Why: fmt.Sprintf("the driver did not answer within %v%s", timeout, askedAgain)}, false
	case errors.As(err, &exit):
		why, crashed := childEnd(exit, said.Bytes())
		return matrixAnswer{Why: why}, crashed
	case err != nil:
		return matrixAnswer{Why: err.Error()}, false
	}
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		return matrixAnswer{Why: fmt.Sprintf("%s answers %.40q: it does not call vulkan.ProbeMain", command[0], out.Bytes())}, false
	}
	return answer, true
}

func probeCommand(opts Options) ([]string, error) {
	if len(opts.Probe) > 0 {
		return opts.Probe, nil
	}
	if !canProbe.Load() {
		return nil, errors.New("the program does not call vulkan.ProbeMain, and they are asked for in a process of its own alone")
	}
	self, err := os.Executable()
	return []string{self}, err
}

const askedAgain = "; the next program asks again"

// crashes are the signals of a process that does what it must not. Others come from outside: Ctrl-C, a closed terminal, a lack of memory, a limit.
var crashes = []syscall.Signal{syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGILL, syscall.SIGFPE, syscall.SIGABRT, syscall.SIGTRAP}

// runtimeEnd is what Go's runtime writes of a signal (on Windows: an exception) in C code before it exits with status 2, as it also does after a panic.
// The group is that of a crash.
var runtimeEnd = regexp.MustCompile(`(?m)^(?:(SIG(?:SEGV|BUS|ILL|FPE|ABRT|TRAP): |fatal error: unexpected signal|Exception 0x)|SIG[A-Z]+: ).*`)

// childEnd tells why a child gave no answer, and whether the driver brought it down.
func childEnd(exit *exec.ExitError, said []byte) (why string, crashed bool) {
	why = exit.Error()
	status, _ := exit.Sys().(syscall.WaitStatus)
	ended := status.Signaled()
	if ended {
		crashed = slices.Contains(crashes, status.Signal())
	} else if m := runtimeEnd.FindSubmatch(said); m != nil && exit.ExitCode() == 2 {
		why, ended, crashed = string(m[0]), true, len(m[1]) > 0
	} else if line, _, _ := bytes.Cut(bytes.TrimSpace(said), []byte("\n")); len(line) > 0 {
		why = string(line)
	}
	switch {
	case crashed:
		return fmt.Sprintf("the driver crashed the process that asked for them (%s)", why), true
	case ended:
		return fmt.Sprintf("the process that asked for them was ended from outside (%s)%s", why, askedAgain), false
	}
	return fmt.Sprintf("the process that asked for them failed (%s)%s", why, askedAgain), false
}

// Component types of VkComponentTypeKHR, and the scope that kernels can use.
const (
	componentF16  = 0
	componentF32  = 1
	componentBF16 = 1000141000
	scopeSubgroup = 3
)

// usableMatrices are those of 16-bit floats that add in float32.
func usableMatrices(shapes []vkx.CooperativeMatrix) []matrixShape {
	var list []matrixShape
	for _, s := range shapes {
		in, ok := map[uint32]graph.DType{componentF16: graph.F16, componentBF16: graph.BF16}[s.A]
		m := matrixShape{int(s.M), int(s.N), int(s.K), in}
		if ok && s.B == s.A && s.C == componentF32 && s.Result == componentF32 && s.Scope == scopeSubgroup && !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list
}

func matrixNames(shapes []vkx.CooperativeMatrix) []string {
	types := map[uint32]string{0: "f16", 1: "f32", 2: "f64", 3: "i8", 4: "i16", 5: "i32", 6: "i64", 7: "u8", 8: "u16", 9: "u32", 10: "u64", 1000141000: "bf16"}
	name := func(t uint32) string {
		if s, ok := types[t]; ok {
			return s
		}
		return fmt.Sprintf("type%d", t)
	}
	var names []string
	for _, m := range shapes {
		s := fmt.Sprintf("%dx%dx%d %s*%s+%s", m.M, m.N, m.K, name(m.A), name(m.B), name(m.C))
		if !slices.Contains(names, s) {
			names = append(names, s)
		}
	}
	return names
}
