//go:build cgo

package vulkan

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vktrain/vktrain/backend/conformance"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, openTest(t, Options{}))
}

// leastDevice has all that is less than usual at once.
const leastDevice = "invocations=128,group=128,shared=16K,subgroup=off,16bit=off,8bit=off"

// What goes over parts of tensors at 64 KiB, but for shapes with rows of a few bytes, of which no part begins where it can be bound, and some that take long.
var (
	splitGroups = []string{
		"embedding", "embedding_grad", "matmul", "rms_norm", "rms_norm_grad", "layer_norm_grad", "qk_norm_rope", "attention", "attention_grad", "softmax",
		"swiglu_grad", "cross_entropy", "cross_entropy_grad", "sum", "sum_rows", "broadcast", "adamw", "cast", "step",
		"row_moments", "summary", "top_magnitudes", "dots", "adamw_stats", "row_angle", "row_norms",
	}
	unsplit = regexp.MustCompile(`66000|64x257|600x2x55`)
)

// onlyF16 tells cases that differ from another one by a format that the same kernels read and write.
func onlyF16(c conformance.Case) bool {
	return c.Group != "cast" && strings.Contains(c.Name, "f16") && !strings.HasSuffix(c.Name, " bf16") && !strings.HasPrefix(c.Name, "bf16 ")
}

// onLeast tells what the least device computes with other kernels than the whole one: the operators and the steps, but for the largest batch of matmuls,
// of which software drivers take minutes, and f16. The models of other groups are made of the same operators.
func onLeast(c conformance.Case) bool {
	models := []string{"block", "curve", "golden", "invariants", "recompute"}
	return !slices.Contains(models, c.Group) && !strings.Contains(c.Name, "batch 66000") && !onlyF16(c)
}

// The least device that kernels must run on; and limits by themselves, with what they change.
func TestConformanceOfLesserDevices(t *testing.T) {
	for limits, o := range map[string]conformance.Options{
		leastDevice:         {Pick: onLeast},
		"shared=16K":        {Only: []string{"attention", "attention_grad"}, Pick: func(c conformance.Case) bool { return !onlyF16(c) }},
		"range=1M,alloc=4M": {Only: []string{"contract", "step", "golden"}},
		"range=64K":         {Only: splitGroups, Pick: func(c conformance.Case) bool { return !unsplit.MatchString(c.Name) && !onlyF16(c) }},
	} {
		t.Run(limits, func(t *testing.T) { conformance.RunWith(t, openTest(t, Options{Limits: limits}), o) })
	}
}

// Without what is optional: the steps in float32. Those of 16 bits are with the least device, above.
func TestConformanceFloor(t *testing.T) {
	b := openTest(t, Options{FloorOnly: true})
	conformance.RunWith(t, b, conformance.Options{Only: []string{"step"}, Pick: func(c conformance.Case) bool { return !strings.Contains(c.Name, "f16") }})
}
