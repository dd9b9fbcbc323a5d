package vulkan

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func testCache(t *testing.T) (cacheFile, []byte) {
	d := DeviceInfo{VendorID: 0x1234, DeviceID: 0x5678, UUID: "dev", DriverUUID: "drv", DriverVersion: 7}
	uuid := [16]byte{1, 2, 3}
	c := newCacheFile(Options{CacheDir: filepath.Join(t.TempDir(), "new", "folder")}, d, uuid)
	data := append([]byte{32, 0, 0, 0, 1, 0, 0, 0, 0x34, 0x12, 0, 0, 0x78, 0x56, 0, 0}, uuid[:]...)
	return c, append(data, "what the driver keeps"...)
}

func TestCacheFileComesBack(t *testing.T) {
	c, data := testCache(t)
	require.Nil(t, c.read())
	require.NoError(t, c.write(data))
	require.Equal(t, data, c.read())
	require.Equal(t, "drv-dev-00000007.bin", filepath.Base(c.path))
	files, err := os.ReadDir(filepath.Dir(c.path))
	require.NoError(t, err)
	require.Len(t, files, 1, "nothing temporary is left")
}

// Whatever happened to the file, it is ignored, not believed.
func TestDamagedCacheFileIsIgnored(t *testing.T) {
	c, data := testCache(t)
	require.NoError(t, c.write(data))
	good, err := os.ReadFile(c.path)
	require.NoError(t, err)
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		require.NoError(t, os.WriteFile(c.path, bad, 0o644))
		require.Nil(t, c.read(), "byte %d changed", i)
		require.NoError(t, os.WriteFile(c.path, good[:i], 0o644))
		require.Nil(t, c.read(), "cut after %d bytes", i)
	}
}

// A folder or a pipe where a file should be must not stop a program, and a pipe must not make it wait.
func TestWhatIsNoCacheFileIsIgnored(t *testing.T) {
	c, _ := testCache(t)
	require.NoError(t, os.MkdirAll(c.path, 0o755))
	require.Nil(t, c.read())
	if runtime.GOOS == "windows" {
		return // it has no pipes in folders
	}
	require.NoError(t, os.Remove(c.path))
	require.NoError(t, exec.Command("mkfifo", c.path).Run())
	done := make(chan error, 3)
	go func() {
		_, err := readCache(c.path)
		done <- err
		tuningFile{c.path}.read()
		done <- nil
		checksFile{path: c.path}.read()
		done <- nil
	}()
	for range cap(done) {
		select {
		case err := <-done:
			if err != nil {
				require.ErrorContains(t, err, "is no file")
			}
		case <-time.After(5 * time.Second):
			t.Fatal("it waits for a pipe")
		}
	}
}

func TestCacheOfAnotherDeviceIsIgnored(t *testing.T) {
	c, data := testCache(t)
	require.NoError(t, c.write(data))
	for _, change := range []func(*cacheFile){
		func(c *cacheFile) { c.device.VendorID++ },
		func(c *cacheFile) { c.device.DeviceID++ },
		func(c *cacheFile) { c.uuid[15]++ },
	} {
		other := c
		change(&other)
		require.Nil(t, other.read())
		require.NoError(t, other.write(data), "nothing is written that would not be read")
	}
	require.Equal(t, data, c.read())
	require.Empty(t, newCacheFile(Options{NoCache: true}, c.device, c.uuid).path)
}
