//go:build cgo

package vulkan

import (
	"os"
	"os/signal"
	"path/filepath"
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

// A child that crashes means that there are no matrices, and is not asked again.
func TestProbeOfDriversThatCrash(t *testing.T) {
	for _, c := range []struct{ name, command, want string }{
		{"crash", "kill -SEGV $$", "the driver ended the process that asked for them (signal: segmentation fault"},
		{"error", "echo vulkan: no such thing >&2; exit 1", "vulkan: no such thing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, opts := matrixDevice(t)
			opts.Probe = []string{"/bin/sh", "-c", c.command}
			d.findMatrices(opts)
			require.Contains(t, d.Features.MatrixProblem, c.want)
			require.Empty(t, d.Features.matrices)

			again, _ := matrixDevice(t)
			opts = answers(opts)
			again.findMatrices(opts)
			require.Equal(t, d.Features, again.Features, "from the cache")
			opts.CheckAgain = true
			again.findMatrices(opts)
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
	require.Equal(t, "the driver did not answer within 50ms", d.Features.MatrixProblem)
	require.Empty(t, d.Features.matrices)

	again, _ := matrixDevice(t)
	again.findMatrices(answers(opts))
	require.Empty(t, again.Features.MatrixProblem)
	require.Equal(t, []matrixShape{{16, 16, 16, graph.F16}}, again.Features.matrices)
	third, _ := matrixDevice(t)
	third.findMatrices(opts)
	require.Equal(t, again.Features, third.Features, "an answer is kept")
}

// Nor does one that somebody ended, such as by Ctrl-C or for want of memory, say anything of the driver.
func TestProbeThatIsEndedIsMadeAgain(t *testing.T) {
	ours := make(chan os.Signal, 1)
	signal.Notify(ours, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT) // a child ignores what its parent ignores, as under nohup, but not what it catches
	defer signal.Stop(ours)
	for _, name := range []string{"INT", "TERM", "HUP", "KILL", "QUIT"} {
		d, opts := matrixDevice(t)
		opts.Probe = []string{"/bin/sh", "-c", "kill -" + name + " $$"}
		d.findMatrices(opts)
		require.Contains(t, d.Features.MatrixProblem, "the driver ended the process that asked for them (signal: ")
		again, _ := matrixDevice(t)
		again.findMatrices(answers(opts))
		require.Empty(t, again.Features.MatrixProblem, name)
		require.Equal(t, []matrixShape{{16, 16, 16, graph.F16}}, again.Features.matrices)
	}
}

// This very program, crashing in place of the driver.
func TestProbeOfThisProgram(t *testing.T) {
	d, opts := matrixDevice(t)
	t.Setenv(crashVariable, "1")
	d.findMatrices(opts)
	require.Contains(t, d.Features.MatrixProblem, "the driver ended the process that asked for them")
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

	opts.Probe = []string{"/bin/sh", "-c", "echo hello"}
	d, _ = matrixDevice(t)
	d.findMatrices(opts)
	require.Contains(t, d.Features.MatrixProblem, `/bin/sh answers "hello`)
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
