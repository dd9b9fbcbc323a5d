package train_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/cpu"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/train"
)

// card is a device with memory of its own, and the host's beside it.
type card struct {
	*cpu.Backend
	onHost []string
}

func (*card) HostMemory() (int64, error) { return 1 << 30, nil }

func (c *card) NewHostStore(vars []graph.Var, onHost func(graph.Var) bool) (backend.Store, error) {
	for _, v := range vars {
		if onHost(v) {
			c.onHost = append(c.onHost, v.Name)
		}
	}
	return c.NewStore(vars)
}

func TestMomentsOnTheHost(t *testing.T) {
	host, err := cpu.New(cpu.Options{Threads: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, host.Close()) }()
	c, err := train.FromPreset("bench-a")
	require.NoError(t, err)
	c.Batch, c.SeqLen, c.Steps = 1, 16, 1
	c.Data.Tokenizer = train.TokenizerByte
	c.Model.VocabSize = 0
	c.Moments = "disk"
	require.ErrorContains(t, c.Validate(), `moments: "disk" is unknown: use device or host`)
	c.Moments = train.MomentsHost
	_, err = train.New(t.Context(), c, host)
	require.ErrorContains(t, err, "moments: host is not possible: cpu:")
	dev := &card{Backend: host}
	tr, err := train.New(t.Context(), c, dev)
	require.NoError(t, err)
	require.NoError(t, tr.Close())
	require.NotEmpty(t, dev.onHost)
	for _, name := range dev.onHost {
		require.Regexp(t, `^adam\.[mv]\.`, name)
	}
	c = c.Resolve()
	c.Model.VocabSize = 300
	plan, err := train.PlanStep(dev, c)
	require.NoError(t, err)
	require.Zero(t, plan.Memory.Moments)
	require.EqualValues(t, 2*4*c.Model.NumParams(), plan.Memory.Host)
	require.Equal(t, plan.Memory.Params+plan.Memory.Arena+plan.Memory.Inputs, plan.Memory.Total(), "of the device")
}
