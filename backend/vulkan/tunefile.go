package vulkan

import (
	"bytes"
	"encoding/json"
	"time"
)

// Choice is the kernel that a node of a shape gets.
type Choice struct {
	Op     string       `json:"op"`
	Shape  string       `json:"shape"`
	Kernel string       `json:"kernel"`
	Rule   string       `json:"rule"`            // what it gets where nothing was measured
	Times  []KernelTime `json:"times,omitempty"` // the fastest first
	Why    string       `json:"why,omitempty"`   // it is the rule's: nothing was measured, or all others were refused
}

// KernelTime is what a kernel took for a shape.
type KernelTime struct {
	Kernel  string  `json:"kernel"`
	Seconds float64 `json:"seconds,omitempty"`
	Refused string  `json:"refused,omitempty"` // why it cannot be chosen
}

// tuning is what was measured on a device.
type tuning struct {
	Kernels string            `json:"kernels"` // a hash of every binary
	Choices []Choice          `json:"choices"`
	Tests   map[string]string `json:"tests"` // by operator, kernel and formats: "" for one that conforms, else what it did
	When    time.Time         `json:"when,omitzero"`
	Device  string            `json:"device,omitempty"`
}

const tuningMagic = "vktrain tuning 1 "

// tuningFile is beside a device's pipelines. One that is damaged, or of other kernels, is as good as none; an empty path is no file. A device that options
// make less of has a file of its own: what is the fastest without cooperative matrices is not with them.
type tuningFile struct{ path string }

func newTuningFile(opts Options, d *DeviceInfo) tuningFile {
	c := newCacheFile(opts, *d, [16]byte{})
	if c.path == "" {
		return tuningFile{}
	}
	base := c.path[:len(c.path)-len(".bin")]
	if less := opts.lessens(); less != "" {
		base += "-" + sum([]byte(less))[:8]
	}
	return tuningFile{base + ".tune"}
}

func (f tuningFile) read() tuning {
	none := tuning{Kernels: kernelsHash(), Tests: map[string]string{}}
	if f.path == "" {
		return none
	}
	file, err := readCache(f.path)
	head, body, _ := bytes.Cut(file, []byte("\n"))
	var t tuning
	if err != nil || string(head) != tuningMagic+sum(body) || json.Unmarshal(body, &t) != nil || t.Kernels != kernelsHash() || t.Tests == nil {
		return none
	}
	return t
}

func (f tuningFile) write(t tuning) error {
	t.When = time.Now().UTC().Truncate(time.Second)
	body, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(f.path, append([]byte(tuningMagic+sum(body)+"\n"), body...))
}

// find gives the choice for a shape, nil if there is none. Where another kernel was the rule's, others could be chosen from: without cooperative
// matrices, or with lesser limits.
func (t *tuning) find(op, shape, rule string) *Choice {
	for i := range t.Choices {
		if c := &t.Choices[i]; c.Op == op && c.Shape == shape && c.Rule == rule {
			return c
		}
	}
	return nil
}

// set replaces the choice for a shape.
func (t *tuning) set(c Choice) {
	if old := t.find(c.Op, c.Shape, c.Rule); old != nil {
		*old = c
		return
	}
	t.Choices = append(t.Choices, c)
}

// Tuned reads what was measured on a device, by an earlier run of this program.
func (d *DeviceInfo) Tuned(opts Options) []Choice { return newTuningFile(opts, d).read().Choices }
