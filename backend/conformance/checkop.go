package conformance

import (
	"errors"
	"fmt"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// CheckOp runs an operator's cases on a backend, always with the same inputs, and returns the first failure. Cases that the backend refuses are left
// out; it is an error if it refuses all.
func CheckOp(b backend.Backend, op graph.Op) error {
	ran := false
	for _, c := range opCases(op) {
		res := c.result(b, Options{Seed: 1, AllowUnsupported: true})
		if res.Error != "" {
			return fmt.Errorf("%s, %s: %s", res.Group, res.Name, res.Error)
		}
		ran = ran || res.Unsupported == ""
	}
	if !ran {
		return errors.New("it takes no case of the conformance kit")
	}
	return nil
}
