//go:build cgo

package vulkan

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/cpu"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/rng"
)

// A parameter of 8 bits that decays by a factor of 16 is exact in float32, so that devices have the same number to round: then they all give the same bits, in
// one piece or in parts, and the mean of all is that number.
func TestStochasticRoundingIsTheSameEverywhere(t *testing.T) {
	const n, start = 70001, 1.0078125
	b := graph.NewBuilder()
	one := func(name string) *graph.Value { return b.Var(name, graph.F32, n) }
	b.AdamW(b.Var("p", graph.BF16, n), one("m"), one("v"), one("g"), b.Input("hyper", graph.F32, graph.HyperLen), b.Input("clip", graph.F32, 1),
		b.Input("key", graph.I32, graph.KeyLen), graph.AdamWAttr{Decay: 1, Tensor: 3})
	p := b.Build("rounding")
	keep := 1 - 12345.0/(1<<16)
	run := func(dev backend.Backend, step uint64) []byte {
		s, err := dev.NewStore(p.Vars())
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		raw := make([]byte, 2*n)
		for i := 0; i < len(raw); i += 2 {
			binary.LittleEndian.PutUint16(raw[i:], uint16(math.Float32bits(start)>>16))
		}
		require.NoError(t, s.Write("p", raw))
		e, err := dev.Compile(p, s)
		require.NoError(t, err)
		defer func() { require.NoError(t, e.Close()) }()
		require.NoError(t, e.Feed("hyper", floats(1, 0.9, 0.99, 1e-8, 12345.0/(1<<16), 0.1, 0.01)))
		require.NoError(t, e.Feed("clip", floats(1)))
		var key []byte
		for _, word := range rng.New(1, "rounding", rng.Num(step)).State().Key() {
			key = binary.LittleEndian.AppendUint32(key, word)
		}
		require.NoError(t, e.Feed("key", key))
		_, err = e.Submit()
		require.NoError(t, err)
		require.NoError(t, s.Read("p", raw))
		return raw
	}
	host, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, host.Close()) }()
	want := run(host, 1)
	require.NotEqual(t, want, run(host, 2), "each step has random bits of its own")
	mean := 0.0
	for i := 0; i < len(want); i += 2 {
		mean += float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(want[i:]))<<16)) / n
	}
	apart := 0x1p-8 // of the two neighbours of start keep, which is under 1; five standard deviations of a mean are at most
	require.InDelta(t, start*keep, mean, 5*apart/2/math.Sqrt(n))
	for _, limits := range []string{"", leastDevice, "range=64K"} {
		require.Equal(t, want, run(openTest(t, Options{Limits: limits}), 1), "%q", limits)
	}
}
