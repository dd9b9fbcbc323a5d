package vulkan

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/shaders"
)

// checks is what was found out about a device by asking and by testing it. It is kept beside the device's pipelines, for the next program: a
// file that is damaged, or of other kernels, is as good as none.
type checks struct {
	Matrices *matrixAnswer     `json:"matrices,omitempty"`
	Kernels  string            `json:"kernels"`          // what was tested: a hash of every binary
	Tests    map[string]string `json:"tests,omitempty"`  // by operation or pipeline: "" if it gave what it must, else what it gave
	When     time.Time         `json:"when,omitzero"`    // of the newest answer, for people who look
	Device   string            `json:"device,omitempty"` // likewise
}

// matrixAnswer is what a device said of its cooperative matrices.
type matrixAnswer struct {
	Shapes []matrixShape `json:"shapes,omitempty"`
	Names  []string      `json:"names,omitempty"` // all that the device listed
	Why    string        `json:"why,omitempty"`   // there is no answer
}

// matrixShape is a cooperative matrix that kernels can use: float32 C (M x N) += A (M x K) B (K x N), by a subgroup.
type matrixShape struct {
	M, N, K int
	In      graph.DType // of A and B
}

const checksMagic = "vktrain checks 2 " // 1 kept failures of the child as the driver's

// checksFile is where a device's checks are; remembered stands in for the file where there is none.
type checksFile struct{ path, key string }

var remembered struct {
	sync.Mutex
	checks map[string]checks
}

func newChecksFile(opts Options, d *DeviceInfo) checksFile {
	c := checksFile{key: fmt.Sprintf("%s-%s-%08x", d.DriverUUID, d.UUID, d.DriverVersion)}
	if dir := cacheDir(opts); dir != "" {
		c.path = filepath.Join(dir, c.key+".checks")
	}
	return c
}

// read gives what is known.
func (f checksFile) read() checks {
	var c checks
	if f.path == "" {
		remembered.Lock()
		defer remembered.Unlock()
		c = remembered.checks[f.key]
		c.Tests = maps.Clone(c.Tests)
	} else if file, err := readCache(f.path); err == nil {
		head, body, _ := bytes.Cut(file, []byte("\n"))
		if string(head) != checksMagic+sum(body) || json.Unmarshal(body, &c) != nil {
			c = checks{}
		}
	}
	if c.Kernels != kernelsHash() {
		c.Kernels, c.Tests = kernelsHash(), nil
	}
	if c.Tests == nil {
		c.Tests = map[string]string{}
	}
	return c
}

// write keeps what is known. To fail costs the next program the time of asking again.
func (f checksFile) write(c checks, device string) {
	c.When, c.Device = time.Now().UTC().Truncate(time.Second), device
	if f.path == "" {
		remembered.Lock()
		defer remembered.Unlock()
		if remembered.checks == nil {
			remembered.checks = map[string]checks{}
		}
		c.Tests = maps.Clone(c.Tests)
		remembered.checks[f.key] = c
		return
	}
	body, err := json.MarshalIndent(c, "", "  ")
	if err == nil {
		_ = replaceFile(f.path, append([]byte(checksMagic+sum(body)+"\n"), body...))
	}
}

func sum(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// kernelsHash changes with any kernel.
var kernelsHash = sync.OnceValue(func() string {
	var all strings.Builder
	for _, k := range shaders.All() {
		fmt.Fprintln(&all, k.Name, k.BinaryHash)
	}
	return sum([]byte(all.String()))
})
