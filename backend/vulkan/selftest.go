//go:build cgo

package vulkan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	vk "github.com/vulkan-go/vulkan"

	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
)

// selfTest runs what a device not seen before has to get right, and takes away what it does not. The results are kept beside the pipelines.
type selfTest struct {
	b     *Backend
	mu    sync.Mutex // around the tests of kernels
	file  checksFile
	known checks
	news  []string // what was found wrong in this process, and not told yet
	dirty bool     // known is not in the file
}

// testDevice tests the subgroup operations. What fails is not used: every kernel has a variant without.
func (b *Backend) testDevice() error {
	t := &selfTest{b: b, file: newChecksFile(b.opts, &b.physical.DeviceInfo), known: checks{Tests: map[string]string{}}}
	b.tests = t
	if b.opts.Statistics {
		return nil
	}
	if t.known = t.file.read(); b.opts.CheckAgain || b.opts.breaks != nil {
		t.known.Tests = map[string]string{}
	}
	for _, op := range subgroupTestOps {
		on := op.caps(b.caps)
		if !*on {
			continue
		}
		for _, size := range b.caps.subgroupSizes() {
			name := op.name
			if size > 0 {
				name = fmt.Sprintf("%s of %d", op.name, size)
			}
			why, err := t.result("subgroup "+name, func() (string, error) { return b.testSubgroups(op.name, size, op.want) })
			if err != nil {
				return err
			}
			if why != "" {
				*on = false
				b.physical.Features.SubgroupOps = slices.DeleteFunc(slices.Clone(b.physical.Features.SubgroupOps), func(s string) bool { return s == op.name })
				break
			}
		}
	}
	b.physical.Tested = true
	t.finish()
	return nil
}

// recall says what an earlier process found.
func (d *physicalDevice) recall(opts Options) {
	for name, why := range newChecksFile(opts, &d.DeviceInfo).read().Tests {
		d.Tested = true
		if why != "" {
			d.Failed = append(d.Failed, name+": "+why)
		}
	}
	slices.Sort(d.Failed)
}

// subgroupSizes are those that kernels may get: the driver's choice, and what may be required.
func (d *deviceCaps) subgroupSizes() []uint32 {
	sizes := []uint32{0}
	if d.subgroupSizeControl {
		for s := d.minSubgroupSize; s <= min(d.maxSubgroupSize, subgroupTestThreads); s *= 2 {
			sizes = append(sizes, s)
		}
	}
	return sizes
}

func (b *Backend) testSubgroups(op string, size uint32, want func([]uint32, int) []uint32) (why string, err error) {
	p := subgroupTestProgram()
	s, err := b.NewStore(p.Vars())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	result := make([]byte, p.Vars()[0].Shape.Elems()*4)
	if err := s.Write("result", result); err != nil {
		return "", err
	}
	e, err := b.compile(p, s, b.capsNow(), lowerSubgroupTest(op, size))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if _, err := e.Submit(); err != nil {
		return "", err
	}
	if err := s.Read("result", result); err != nil {
		return "", err
	}
	return checkSubgroups(want, size, result), nil
}

// result is that of a test: from an earlier process, or of running it now. A test that could not be run to its end is a failure too, unless the device
// was lost by it, or what was in its way says nothing about the device.
func (t *selfTest) result(name string, run func() (string, error)) (string, error) {
	why, done := t.known.Tests[name]
	if !done {
		var err error
		if why, err = run(); err != nil {
			if t.b.isLost() {
				t.known.Tests[name], t.dirty = "the device was lost", true
				t.write()
				return "", fmt.Errorf("vulkan: %s: the self-test of %s lost the device; it is not used from now on: start again: %w", t.b.physical.Name, name, err)
			}
			if passing(err) {
				return "", fmt.Errorf("vulkan: %s: the self-test of %s: %w", t.b.physical.Name, name, err)
			}
			why = oneLine(err)
		}
		t.known.Tests[name], t.dirty = why, true
		if why != "" {
			t.news = append(t.news, name+": "+why)
		}
	}
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	if line := name + ": " + why; why != "" && !slices.Contains(t.b.physical.Failed, line) {
		t.b.physical.Failed = append(t.b.physical.Failed, line)
	}
	return why, nil
}

// passing tells an error that the same device need not give again: other programs have its memory, the validation layer has something to say, or
// Options.Context is done.
func passing(err error) bool {
	var memory *MemoryError
	var validation *ValidationError
	code := vkx.Code(err)
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &memory) || errors.As(err, &validation) || code == vk.ErrorOutOfDeviceMemory || code == vk.ErrorOutOfHostMemory
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// finish keeps the results, and says what is wrong.
func (t *selfTest) finish() {
	t.write()
	if len(t.news) > 0 && t.b.opts.Warn != nil {
		t.b.opts.Warn(fmt.Sprintf("%s computes wrongly, and does without: %s", t.b.physical.Name, strings.Join(t.news, "; ")))
	}
	t.news = nil
}

func (t *selfTest) write() {
	if t.b.opts.breaks == nil && t.dirty {
		t.dirty = false
		t.file.write(t.known, t.b.physical.Name)
	}
}
