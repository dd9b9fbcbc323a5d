package vulkan

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
)

// cacheFile keeps compiled pipelines between runs: a magic word, the SHA-256 of the rest, and the driver's own data. A file that is
// damaged, or of another device or driver, is as good as none.
type cacheFile struct {
	path   string // empty for no file
	device DeviceInfo
	uuid   [16]byte // the driver's pipelineCacheUUID
}

const (
	cacheMagic  = "vktrain pipelines 1\n"
	cacheHeader = len(cacheMagic) + sha256.Size
	maxCache    = 256 << 20 // bytes; a larger file is not read, of this or another kind
)

// newCacheFile names the file of a device and driver version.
func newCacheFile(opts Options, d DeviceInfo, uuid [16]byte) cacheFile {
	c := cacheFile{device: d, uuid: uuid}
	if dir := cacheDir(opts); dir != "" {
		c.path = filepath.Join(dir, fmt.Sprintf("%s-%s-%08x.bin", d.DriverUUID, d.UUID, d.DriverVersion))
	}
	return c
}

// cacheDir is where files are kept between runs, "" for nowhere.
func cacheDir(opts Options) string {
	if opts.NoCache {
		return ""
	}
	if opts.CacheDir != "" {
		return opts.CacheDir
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "" // no home: compile each time
	}
	return filepath.Join(user, "vktrain", "pipelines")
}

// read gives the driver's data, nil if there is none that can be used.
func (c cacheFile) read() []byte {
	if c.path == "" {
		return nil
	}
	file, err := readCache(c.path)
	if err != nil || len(file) < cacheHeader || string(file[:len(cacheMagic)]) != cacheMagic {
		return nil
	}
	data := file[cacheHeader:]
	if sum := sha256.Sum256(data); !bytes.Equal(sum[:], file[len(cacheMagic):cacheHeader]) || !c.ours(data) {
		return nil
	}
	return data
}

// readCache reads a file of the cache folder. What is no file is refused: a pipe would never end.
func readCache(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxCache {
		return nil, fmt.Errorf("vulkan: %s is no file, or too large", path)
	}
	return os.ReadFile(path)
}

// ours checks Vulkan's own header: drivers are known to trust it too far.
func (c cacheFile) ours(data []byte) bool {
	const headerBytes = 32
	if len(data) < headerBytes {
		return false
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(data[4*i:]) }
	return word(0) >= headerBytes && word(1) == 1 && word(2) == c.device.VendorID && word(3) == c.device.DeviceID &&
		bytes.Equal(data[16:32], c.uuid[:])
}

// write replaces the file, if the data is the driver's.
func (c cacheFile) write(data []byte) error {
	if c.path == "" || !c.ours(data) {
		return nil
	}
	sum := sha256.Sum256(data)
	return replaceFile(c.path, append(append([]byte(cacheMagic), sum[:]...), data...))
}

// replaceFile writes a file in one step, so that another process never sees a part of it.
func replaceFile(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, "*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // fails once it is renamed
	_, err = tmp.Write(data)
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
