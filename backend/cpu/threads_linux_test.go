package cpu

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHardwareThreadsOfOneCoreCountOnce(t *testing.T) {
	dir := t.TempDir()
	for thread, siblings := range []string{"0,4", "1,5", "2,6", "3,7", "0,4", "1,5", "2,6", "3,7"} {
		folder := filepath.Join(dir, fmt.Sprint("cpu", thread), "topology")
		require.NoError(t, os.MkdirAll(folder, 0o777))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "thread_siblings_list"), []byte(siblings+"\n"), 0o666))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "cpufreq", "topology"), 0o777))
	require.Equal(t, 4, coresIn(dir, func(int) bool { return true }))
	require.Equal(t, 2, coresIn(dir, func(thread int) bool { return thread == 0 || thread == 4 || thread == 7 }), "only those of the affinity")
	require.Equal(t, 0, coresIn(filepath.Join(dir, "absent"), func(int) bool { return true }))
}

func TestTheMachineIsKnown(t *testing.T) {
	require.Positive(t, physicalCores())
	require.LessOrEqual(t, DefaultThreads(), runtime.GOMAXPROCS(0))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	require.Equal(t, 1, DefaultThreads())
	require.Contains(t, describe(1), ", 1 thread")
	require.Contains(t, describe(3), ", 3 threads")
}
