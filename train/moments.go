package train

import (
	"strings"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// Where AdamW's moments are (Config.Moments).
const (
	MomentsDevice = "device" // with the parameters
	MomentsHost   = "host"   // in the host's memory, where the device's kernels read and write them: slower, and two thirds of what a step keeps is off the device
)

// isMoment tells the variables that are AdamW's moments.
func isMoment(v graph.Var) bool {
	return strings.HasPrefix(v.Name, PrefixM) || strings.HasPrefix(v.Name, PrefixV)
}

// newStore makes a store with the moments where the config wants them.
func (c Config) newStore(dev backend.Backend, vars []graph.Var) (backend.Store, error) {
	if c.Moments != MomentsHost {
		return dev.NewStore(vars)
	}
	if err := c.checkMoments(dev); err != nil {
		return nil, err
	}
	return dev.(backend.HostStorer).NewHostStore(vars, isMoment)
}

// checkMoments refuses moments in host memory on a device that has none of its own kind.
func (c Config) checkMoments(dev backend.Backend) error {
	if c.Moments != MomentsHost {
		return nil
	}
	host, ok := dev.(backend.HostStorer)
	if !ok {
		return badKey("moments", "host is not possible: %s computes in the host's memory, so there is nothing to gain: use device", dev.Info())
	}
	if _, err := host.HostMemory(); err != nil {
		return badKey("moments", "host is not possible: %v: use device", err)
	}
	return nil
}

// placed says which of a need is in the host's memory.
func (c Config) placed(m Memory) Memory {
	if c.Moments == MomentsHost {
		m.Host, m.Moments = m.Host+m.Moments, 0
	}
	return m
}
