package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/vktrain/vktrain/backend/vulkan"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/train/device"
)

// pipelinesJSON are the kernels of a training step as a device's compiler made them.
type pipelinesJSON struct {
	Device  string               `json:"device"` // vulkan:N
	Name    string               `json:"name"`
	Preset  string               `json:"preset"`
	Batch   int                  `json:"batch"`
	SeqLen  int                  `json:"seq_len"`
	Error   string               `json:"error,omitempty"` // why there are no kernels
	Kernels []vulkan.KernelStats `json:"kernels"`
}

// pipelines compiles a training step for each usable Vulkan device. Nothing runs.
func pipelines(devices []vulkan.DeviceInfo, size sizeFlags) ([]pipelinesJSON, error) {
	cfg, programs, err := size.programs(graph.F32)
	if err != nil {
		return nil, err
	}
	all := []pipelinesJSON{}
	for _, d := range devices {
		if d.Unusable != "" {
			continue
		}
		p := pipelinesJSON{
			Device: fmt.Sprintf("%s:%d", device.Vulkan, d.Index), Name: d.Name, Preset: size.preset, Batch: cfg.Batch, SeqLen: cfg.SeqLen,
			Kernels: []vulkan.KernelStats{},
		}
		b, err := vulkan.Open(vulkan.Options{Device: fmt.Sprint(d.Index), Statistics: true, NoCache: true})
		if err == nil {
			p.Kernels, err = b.PipelineStats(programs...)
			err = errors.Join(err, b.Close())
		}
		if err != nil {
			p.Error = oneLine(strings.TrimPrefix(err.Error(), "vulkan: "))
		}
		all = append(all, p)
	}
	return all, nil
}

// pipelineColumns are what drivers tell, under the names that they have for it: RADV, ANV, NVIDIA's.
var pipelineColumns = []struct {
	heading string
	names   []string
}{
	{"registers", []string{"VGPRs", "Register Count", "Max live registers"}},
	{"scalar", []string{"SGPRs"}},
	{"shared", []string{"LDS size", "Shared Memory Size", "Workgroup Memory Size"}},
	{"scratch", []string{"Scratch size", "Scratch Memory Size", "Local Memory Size"}},
	{"code", []string{"Code size", "Binary Size"}},
	{"instructions", []string{"Instructions", "Instruction Count"}},
	{"occupancy", []string{"Subgroups per SIMD"}},
	{"latency", []string{"Latency", "Cycle Count"}},
}

func writePipelines(w io.Writer, p pipelinesJSON) {
	fmt.Fprintf(w, "%-10s %s: the kernels of a training step of %s, %d sequences of %d tokens\n", p.Device, p.Name, p.Preset, p.Batch, p.SeqLen)
	if p.Error != "" {
		fmt.Fprintf(w, "  no statistics: %s\n\n", p.Error)
		return
	}
	cell := func(x float64, known bool) string {
		if !known {
			return "-"
		}
		return fmt.Sprintf("%.0f", x)
	}
	t := table{left: 1, rows: [][]string{{"kernel", "launches", "subgroup", "spills"}}}
	columns := pipelineColumns[:0:0]
	for _, c := range pipelineColumns { // those that this driver has
		if slices.ContainsFunc(p.Kernels, func(k vulkan.KernelStats) bool { _, ok := k.FindAny(c.names...); return ok }) {
			columns = append(columns, c)
			t.rows[0] = append(t.rows[0], c.heading)
		}
	}
	for _, k := range p.Kernels {
		name := k.Kernel
		if len(k.Constants) > 0 {
			name += " " + strings.Trim(fmt.Sprint(k.Constants), "[]")
		}
		cells := []string{name, fmt.Sprint(k.Launches), fmt.Sprint(k.Subgroup), cell(k.Spills())}
		for _, c := range columns {
			cells = append(cells, cell(k.FindAny(c.names...)))
		}
		t.add(cells...)
	}
	t.write(w)
	fmt.Fprintln(w)
}
