//go:build cgo

package vulkan

import (
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
	"github.com/vktrain/vktrain/graph"
)

// crashVariable makes this test binary crash when it starts, as a driver's query would make a child crash.
const crashVariable = "VKTRAIN_TEST_CRASH"

func TestMain(m *testing.M) {
	if os.Getenv(probeVariable) != "" && os.Getenv(crashVariable) != "" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		time.Sleep(time.Minute) // Go's handler of the signal needs a moment
	}
	ProbeMain()
	os.Exit(m.Run())
}

// matrixDevice looks as if it had cooperative matrices, and a cache of its own.
func matrixDevice(t *testing.T) (*physicalDevice, Options) {
	d := &physicalDevice{DeviceInfo: DeviceInfo{UUID: t.Name(), DriverUUID: "driver"}, matrixFeature: true}
	return d, Options{CacheDir: t.TempDir()}
}

const threeShapes = `{"shapes":[{"M":16,"N":16,"K":16,"In":2}],"names":["16x16x16 f16*f16+f32"]}`

// answers is a child that says what matrices there are.
func answers(opts Options) Options {
	opts.Probe, opts.probeTimeout = []string{"/bin/sh", "-c", "echo '" + threeShapes + "'"}, 0
	return opts
}

// A driver that crashes the child means that there are no matrices, and is not asked again; whatever else ends the child says nothing of the driver, and
// the next program asks again.
func TestProbeKeepsCrashesAlone(t *testing.T) {
	ours := make(chan os.Signal, 1)
	signal.Notify(ours, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT) // a child ignores what its parent ignores, as under nohup, but not what it catches
	defer signal.Stop(ours)
	const crash, outside, failed = "the driver crashed the process that asked for them (", "the process that asked for them was ended from outside (", "the process that asked for them failed ("
	goEnd := func(said string) string { return "echo noise >&2; echo '" + said + "' >&2; exit 2" }
	for _, c := range []struct{ command, want string }{
		{"kill -SEGV $$", crash + "signal: segmentation fault"},
		{"kill -BUS $$", crash + "signal: bus error"},
		{"kill -ABRT $$", crash + "signal: " + syscall.SIGABRT.String()}, // systems have names of their own
		{"kill -ILL $$", crash + "signal: illegal instruction"},
		{"kill -FPE $$", crash + "signal: floating point exception"},
		{goEnd("SIGSEGV: segmentation violation"), crash + "SIGSEGV: segmentation violation)"},
		{goEnd("SIGABRT: abort"), crash + "SIGABRT: abort)"},
		{goEnd("fatal error: unexpected signal during runtime execution"), crash + "fatal error: unexpected signal during runtime execution)"},
		{goEnd("Exception 0xc0000005 0x0 0x0 0x7ff0"), crash + "Exception 0xc0000005 0x0 0x0 0x7ff0)"},

		{"kill -INT $$", outside + "signal: interrupt)"},
		{"kill -TERM $$", outside + "signal: terminated)"},
		{"kill -HUP $$", outside + "signal: hangup)"},
		{"kill -KILL $$", outside + "signal: killed)"},
		{"kill -QUIT $$", outside + "signal: quit"},
		{"kill -XCPU $$", outside + "signal: "},
		{"kill -PIPE $$", outside + "signal: broken pipe)"},
		{goEnd("SIGQUIT: quit"), outside + "SIGQUIT: quit)"},

		{"echo vulkan: no such thing >&2; exit 1", failed + "vulkan: no such thing)"},
		{"exit 1", failed + "exit status 1)"},
		{"echo; echo 'flag -x is unknown' >&2; exit 2", failed + "flag -x is unknown)"},
		{"echo panic: of ours >&2; echo '[signal SIGSEGV: segmentation violation]' >&2; exit 2", failed + "panic: of ours)"},
		{"echo SIGSEGV: said by a script >&2; exit 3", failed + "SIGSEGV: said by a script)"},
		{"echo hello", `/bin/sh answers "hello`},
		{"true", `/bin/sh answers ""`},
	} {
		t.Run(c.command, func(t *testing.T) {
			d, opts := matrixDevice(t)
			opts.Probe = []string{"/bin/sh", "-c", "ulimit -c 0; " + c.command}
			d.findMatrices(opts)
			require.Contains(t, d.Features.MatrixProblem, c.want)
			require.Empty(t, d.Features.matrices)
			crashed := strings.HasPrefix(c.want, crash)
			require.Equal(t, !crashed && !strings.HasPrefix(c.want, "/bin/sh"), strings.HasSuffix(d.Features.MatrixProblem, "; the next program asks again"))

			again, _ := matrixDevice(t)
			opts = answers(opts)
			again.findMatrices(opts)
			if crashed {
				require.Equal(t, d.Features, again.Features, "from the cache")
				newer, _ := matrixDevice(t)
				newer.DriverVersion++
				newer.findMatrices(opts)
				require.Empty(t, newer.Features.MatrixProblem, "another driver is asked")
				opts.CheckAgain = true
				again.findMatrices(opts)
			}
			require.Empty(t, again.Features.MatrixProblem)
			require.Equal(t, []matrixShape{{16, 16, 16, graph.F16}}, again.Features.matrices)
		})
	}
}

// One that is too slow, as on a busy machine, means so for this time alone.
func TestProbeOfDriversThatHang(t *testing.T) {
	d, opts := matrixDevice(t)
	opts.Probe, opts.probeTimeout = []string{"/bin/sh", "-c", "exec sleep 60"}, 50*time.Millisecond
	d.findMatrices(opts)
	require.Equal(t, "the driver did not answer within 50ms; the next program asks again", d.Features.MatrixProblem)
	require.Empty(t, d.Features.matrices)

	again, _ := matrixDevice(t)
	again.findMatrices(answers(opts))
	require.Empty(t, again.Features.MatrixProblem)
	require.Equal(t, []matrixShape{{16, 16, 16, graph.F16}}, again.Features.matrices)
	third, _ := matrixDevice(t)
	third.findMatrices(opts)
	require.Equal(t, again.Features, third.Features, "an answer is kept")
}

// This very program, crashing in place of the driver.
func TestProbeOfThisProgram(t *testing.T) {
	d, opts := matrixDevice(t)
	t.Setenv(crashVariable, "1")
	d.findMatrices(opts)
	require.Contains(t, d.Features.MatrixProblem, "the driver crashed the process that asked for them (SIGSEGV: ")
	require.Empty(t, d.Features.CooperativeMatrix)

	t.Setenv(crashVariable, "")
	opts.CheckAgain = true
	d.findMatrices(opts)
	require.Contains(t, d.Features.MatrixProblem, "no such Vulkan device", "the child has asked: there is no such device")
}

// What a child says through a child is what the driver says.
func TestProbeAnswersLikeTheDriver(t *testing.T) {
	b := openTest(t, Options{})
	if !b.physical.matrixFeature {
		t.Skip(b.Info().Name, " has no cooperative matrices")
	}
	shapes, err := b.instance.CooperativeMatrices(b.physical.handle)
	require.NoError(t, err)
	require.Empty(t, b.physical.Features.MatrixProblem)
	require.Equal(t, matrixNames(shapes), b.physical.Features.CooperativeMatrix)
	require.Equal(t, usableMatrices(shapes), b.physical.Features.matrices)
}

func TestProbeIsOnlyMadeWhereItIsSafe(t *testing.T) {
	d, opts := matrixDevice(t)
	opts.Probe = []string{filepath.Join(t.TempDir(), "must not be run")}
	off := opts
	off.NoMatrices = true
	d.findMatrices(off)
	require.Equal(t, "they are turned off", d.Features.MatrixProblem)

	d, _ = matrixDevice(t)
	t.Setenv(noMatricesVariable, "1")
	d.findMatrices(opts)
	require.Equal(t, "they are turned off", d.Features.MatrixProblem)
	t.Setenv(noMatricesVariable, "")

	d, opts = matrixDevice(t)
	canProbe.Store(false)
	defer canProbe.Store(true)
	d.findMatrices(opts)
	require.Contains(t, d.Features.MatrixProblem, "does not call vulkan.ProbeMain")
}

func TestDamagedChecksAreIgnored(t *testing.T) {
	opts := Options{CacheDir: t.TempDir()}
	file := newChecksFile(opts, &DeviceInfo{UUID: "u", DriverUUID: "d"})
	c := file.read()
	require.Empty(t, c.Tests)
	c.Tests["ballot"] = "wrong"
	file.write(c, "a device")
	require.Equal(t, c.Tests, file.read().Tests)
	data, err := os.ReadFile(file.path)
	require.NoError(t, err)
	data[len(data)-10] ^= 1
	require.NoError(t, os.WriteFile(file.path, data, 0o644))
	require.Empty(t, file.read().Tests)
	require.NoError(t, os.WriteFile(file.path, []byte("junk"), 0o644))
	require.Empty(t, file.read().Tests)

	c.Kernels = "of another build"
	file.write(c, "a device")
	require.Empty(t, file.read().Tests, "other kernels")
}

func TestUsableMatrices(t *testing.T) {
	shape := func(a, c, scope uint32) vkx.CooperativeMatrix {
		return vkx.CooperativeMatrix{M: 8, N: 16, K: 32, A: a, B: a, C: c, Result: c, Scope: scope}
	}
	require.Equal(t, []matrixShape{{8, 16, 32, graph.F16}, {8, 16, 32, graph.BF16}}, usableMatrices([]vkx.CooperativeMatrix{
		shape(componentF16, componentF16, scopeSubgroup), shape(componentF16, componentF32, scopeSubgroup),
		shape(componentF16, componentF32, scopeSubgroup), shape(componentF16, componentF32, scopeSubgroup+1),
		shape(3, 5, scopeSubgroup), shape(componentBF16, componentF32, scopeSubgroup),
	}))
}
