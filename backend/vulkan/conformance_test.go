//go:build cgo

package vulkan

import (
	"regexp"
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

// The least device that kernels must run on, with the whole kit but the largest batch of matmuls, of which software drivers take minutes, and f16; and
// limits by themselves, with what they change.
func TestConformanceOfLesserDevices(t *testing.T) {
	for limits, o := range map[string]conformance.Options{
		leastDevice:         {Pick: func(c conformance.Case) bool { return !strings.Contains(c.Name, "batch 66000") && !onlyF16(c) }},
		"shared=16K":        {Only: []string{"attention", "attention_grad"}},
		"range=1M,alloc=4M": {Only: []string{"contract", "step", "golden"}},
		"range=64K":         {Only: splitGroups, Pick: func(c conformance.Case) bool { return !unsplit.MatchString(c.Name) }},
	} {
		t.Run(limits, func(t *testing.T) { conformance.RunWith(t, openTest(t, Options{Limits: limits}), o) })
	}
}

func TestConformanceFloor(t *testing.T) {
	b := openTest(t, Options{FloorOnly: true})
	conformance.RunWith(t, b, conformance.Options{Only: []string{"step"}})
}
