package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/vulkan"
	"github.com/vktrain/vktrain/internal/units"
	"github.com/vktrain/vktrain/train/device"
)

func newDevicesCommand() *cobra.Command {
	var asJSON, withPipelines, test bool
	var size sizeFlags
	f := deviceFlags{name: device.Auto}
	c := &cobra.Command{
		Use:   "devices",
		Short: "List what there is to train on, and what auto takes",
		Long: `List what there is to train on, and what auto takes.

A device's subgroup operations are tested when it is first used, and with --test now; what gives wrong results is not used, and listed.

With --pipelines, each Vulkan device compiles the kernels of a training step and says what its compiler made of them: registers, spills,
shared memory, code size, occupancy. Nothing runs. Not every driver tells that.`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			for _, flag := range []string{"preset", "batch", "seq"} {
				if c.Flags().Changed(flag) && !withPipelines {
					return usagef("--%s says which kernels --pipelines is to show: give that too", flag)
				}
			}
			survey, err := device.Look(f.options)
			if err != nil {
				return err
			}
			if test && survey.VulkanErr != nil {
				return survey.VulkanErr
			}
			if test {
				if err := testDevices(survey.Vulkan, f.options); err != nil {
					return err
				}
			}
			var kernels []pipelinesJSON
			if withPipelines {
				if kernels, err = pipelines(survey.Vulkan, size); err != nil {
					return err
				}
			}
			if asJSON {
				return writeDevicesJSON(c.OutOrStdout(), survey, kernels)
			}
			writeDevices(c.OutOrStdout(), survey)
			for _, p := range kernels {
				fmt.Fprintln(c.OutOrStdout())
				writePipelines(c.OutOrStdout(), p)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&test, "test", false, "test each Vulkan device anew: its subgroup operations, and its cooperative matrices by asking the driver again")
	c.Flags().BoolVar(&withPipelines, "pipelines", false, "also what the drivers' compilers tell of the kernels of a training step")
	size.add(c)
	f.addThreads(c)
	f.addMatrices(c)
	return c
}

// testDevices opens each device that can be used, for its self-test. One that does not open says why.
func testDevices(devices []vulkan.DeviceInfo, o device.Options) error {
	for i := range devices {
		d := &devices[i]
		if d.Unusable != "" {
			continue
		}
		b, err := vulkan.Open(vulkan.Options{Device: fmt.Sprint(d.Index), CheckAgain: true, NoMatrices: o.NoMatrices})
		if err != nil {
			d.Failed = []string{"it does not open: " + oneLine(err.Error())}
			continue
		}
		*d = b.Device()
		if err := b.Close(); err != nil {
			return err
		}
	}
	return nil
}

// devicesJSON is what --json prints.
type devicesJSON struct {
	Auto        device.Choice       `json:"auto"`
	CPU         cpuJSON             `json:"cpu"`
	Vulkan      []vulkan.DeviceInfo `json:"vulkan"`
	VulkanError string              `json:"vulkan_error,omitempty"`
	Pipelines   []pipelinesJSON     `json:"pipelines,omitempty"` // with --pipelines
}

type cpuJSON struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Vendor string `json:"vendor,omitempty"`
	Driver string `json:"driver"`
	Memory int64  `json:"memory_bytes,omitempty"`
}

func writeDevicesJSON(w io.Writer, s device.Survey, kernels []pipelinesJSON) error {
	out := devicesJSON{
		Auto:   s.Auto,
		CPU:    cpuJSON{s.CPU.Name, s.CPU.Kind.String(), s.CPU.Vendor, s.CPU.Driver, s.CPU.Memory},
		Vulkan: s.Vulkan, Pipelines: kernels,
	}
	if out.Vulkan == nil {
		out.Vulkan = []vulkan.DeviceInfo{}
	}
	if s.VulkanErr != nil {
		out.VulkanError = s.VulkanErr.Error()
	}
	return writeJSON(w, out)
}

func writeDevices(w io.Writer, s device.Survey) {
	writeCPU(w, s.CPU)
	for i := range s.Vulkan {
		writeVulkan(w, &s.Vulkan[i])
	}
	if s.VulkanErr != nil {
		fmt.Fprintf(w, "no Vulkan: %s\n\n", oneLine(strings.TrimPrefix(s.VulkanErr.Error(), "vulkan: ")))
	}
	fmt.Fprintf(w, "auto takes %s: %s\n", s.Auto.Device, oneLine(s.Auto.Why))
}

func writeCPU(w io.Writer, info backend.Info) {
	fmt.Fprintf(w, "cpu        %s\n", info.Name)
	detail(w, "kind", info.Kind.String())
	detail(w, "driver", info.Driver)
	if info.Memory > 0 {
		detail(w, "memory", size(info.Memory))
	}
	fmt.Fprintln(w)
}

func writeVulkan(w io.Writer, d *vulkan.DeviceInfo) {
	fmt.Fprintf(w, "%-10s %s\n", fmt.Sprintf("%s:%d", device.Vulkan, d.Index), d.Name)
	if d.Unusable != "" {
		detail(w, "unusable", d.Unusable)
	}
	detail(w, "kind", d.Kind.String())
	detail(w, "driver", fmt.Sprintf("%s, Vulkan %s", d.Driver, d.API))
	var heaps []string
	for i, h := range d.Heaps {
		where, budget := "host", ""
		if h.DeviceLocal {
			where = "device"
		}
		if h.Budget > 0 {
			budget = "budget " + size(h.Budget) + ", "
		}
		heaps = append(heaps, fmt.Sprintf("heap %d: %s %s (%s%s free)", i, size(h.Bytes), where, budget, size(h.Free)))
	}
	if len(heaps) == 0 {
		heaps = []string{"none"}
	}
	if d.Unified {
		heaps = append(heaps, "unified")
	}
	detail(w, "memory", strings.Join(heaps, ", "))
	moments := "on the device alone: it has no other memory"
	for _, h := range d.Heaps {
		if !h.DeviceLocal {
			moments = fmt.Sprintf("on the device, or in the host's %s (--moments host)", size(h.Bytes))
		}
	}
	detail(w, "moments", moments)
	l, f := d.Limits, d.Features
	detail(w, "limits", fmt.Sprintf("%d invocations, %s shared, %d buffers of %s, allocations of %s, %d B push constants",
		l.Invocations, size(int64(l.Shared)), l.Bindings, size(l.BindBytes), size(l.AllocBytes), l.PushBytes))
	subgroups := fmt.Sprintf("of %d", f.SubgroupSize)
	if f.SubgroupSizeControl {
		subgroups += fmt.Sprintf(" (%d to %d)", f.MinSubgroupSize, f.MaxSubgroupSize)
	}
	detail(w, "subgroups", subgroups+": "+strings.Join(f.SubgroupOps, " "))
	detail(w, "features", features(f))
	if len(d.Choices) > 0 {
		detail(w, "tuned", counted(len(d.Choices), "shape")+": see vktrain tune")
	}
	switch {
	case len(d.Failed) > 0:
		detail(w, "self-test", "failed, and not used: "+strings.Join(d.Failed, "; "))
	case d.Tested:
		detail(w, "self-test", "passed")
	case d.Unusable == "":
		detail(w, "self-test", "not run yet")
	}
	for _, q := range d.Quirks {
		detail(w, "quirk", fmt.Sprintf("%s: %s, since %s (%s)", q.Name, q.Change, q.Why, q.Source))
	}
	fmt.Fprintln(w)
}

func features(f vulkan.Features) string {
	var has []string
	for _, x := range []struct {
		on   bool
		name string
	}{
		{f.Storage16, "16-bit storage"}, {f.Float16, "float16"}, {f.Int16, "int16"}, {f.Int8, "int8"}, {f.Float64, "float64"}, {f.Int64, "int64"},
		{f.FullSubgroups, "full subgroups"}, {f.PipelineStatistics, "pipeline statistics"}, {f.MemoryBudget, "memory budget"}, {f.Portability, "portability subset"},
	} {
		if x.on {
			has = append(has, x.name)
		}
	}
	if n := len(f.CooperativeMatrix); n > 0 {
		has = append(has, fmt.Sprintf("cooperative matrices (%s)", strings.Join(f.CooperativeMatrix, "; ")))
	}
	if f.MatrixProblem != "" {
		has = append(has, "no cooperative matrices: "+f.MatrixProblem)
	}
	if len(has) == 0 {
		return "none"
	}
	return strings.Join(has, ", ")
}

func detail(w io.Writer, name, text string) { fmt.Fprintf(w, "  %-10s %s\n", name, text) }

// size prints bytes with a binary unit.
func size(n int64) string { return units.Bytes(n) }
