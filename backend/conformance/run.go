package conformance

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/vktrain/vktrain/backend"
)

// SeedVariable is the environment variable that sets the seed of the inputs that vary, so that a failure repeats.
const SeedVariable = "VKTRAIN_CONFORMANCE_SEED"

// Run checks a backend: a subtest per group and case. An operator that the backend lacks fails.
func Run(t *testing.T, b backend.Backend) { RunWith(t, b, Options{}) }

// RunWith is Run with options. Progress is not called.
func RunWith(t *testing.T, b backend.Backend, o Options) {
	t.Helper()
	cases, err := selectCases(o)
	if err != nil {
		t.Fatal(err)
	}
	if o.Seed == 0 {
		o.Seed = seedFromEnvironment(t)
	}
	t.Logf("%s, %s=%d", b.Info(), SeedVariable, o.Seed)
	for len(cases) > 0 {
		group := cases[0].Group
		n := 0
		for n < len(cases) && cases[n].Group == group {
			n++
		}
		t.Run(group, func(t *testing.T) {
			for _, c := range cases[:n] {
				t.Run(c.Name, func(t *testing.T) {
					switch r := c.result(b, o); {
					case r.Error != "":
						t.Error(r.Error)
					case r.Unsupported != "":
						t.Logf("unsupported: %s", r.Unsupported)
					}
				})
			}
		})
		cases = cases[n:]
	}
}

func seedFromEnvironment(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv(SeedVariable)
	if text == "" {
		return uint64(time.Now().UnixNano())
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", SeedVariable, err)
	}
	return seed
}
