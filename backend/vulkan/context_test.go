//go:build cgo

package vulkan

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// countdown is a context that is done once it has been asked so often.
type countdown struct {
	context.Context
	left atomic.Int64
}

func (c *countdown) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// Compile ends between two kernels, what it has compiled is kept, and nothing that was left out is remembered as broken.
func TestCompileEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	ctx := &countdown{Context: context.Background()}
	ctx.left.Store(1 << 40)
	b := openTest(t, Options{Context: ctx, CacheDir: dir, Limits: "invocations=128"})
	p := layers()
	s := newStore(t, b, p)
	before := len(b.pipelines.pipelines)
	ctx.left.Store(1)
	_, err := b.Compile(p, s)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, before+1, len(b.pipelines.pipelines), "one kernel was in progress")
	require.Empty(t, b.Device().Failed)
	_, err = b.Compile(p, s)
	require.ErrorIs(t, err, context.Canceled, "it stays so")
	ctx.left.Store(1 << 40)
	e := compile(t, b, p, s)
	ctx.left.Store(0)
	require.NoError(t, e.Feed("x", make([]byte, 20*24*4)))
	_, err = e.Submit()
	require.NoError(t, err, "what is compiled runs on")
	require.NoError(t, s.Read("w", make([]byte, 40*24*4)))
	checks, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.NotEmpty(t, checks)
	for _, name := range checks {
		raw, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NotContains(t, string(raw), "canceled", name)
	}
}

// A device whose first test is ended does not open, and is tested by the next one that opens it.
func TestOpenEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	openTest(t, Options{CacheDir: t.TempDir()}) // skips where there is none
	_, err := Open(Options{Context: ctx, CacheDir: dir, Software: true})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, openTest(t, Options{CacheDir: dir}).Device().Failed)
}
