package data

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func count(n int) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = int32(i)
	}
	return x
}

func TestBatchesAreShuffledWindows(t *testing.T) {
	const T, B = 5, 3
	b, err := NewBatches(count(101), T, B, 9)
	require.NoError(t, err)
	tokens, targets := make([]int32, B*T), make([]int32, B*T)
	seen := map[int32]int{}
	for range 6 { // 18 of an epoch's 19 or 20 windows
		b.Next(tokens, targets)
		for i, v := range tokens {
			require.Equal(t, v+1, targets[i])
			if i%T > 0 {
				require.Equal(t, tokens[i-1]+1, v)
			}
			seen[v]++
		}
	}
	for v, n := range seen {
		require.Equal(t, 1, n, "token %d twice in an epoch", v)
	}
	require.Len(t, seen, 90)
}

func TestBatchesGoOnFromAState(t *testing.T) {
	const T, B = 4, 2
	next := func(b *Batches) []int32 {
		tokens, targets := make([]int32, B*T), make([]int32, B*T)
		b.Next(tokens, targets)
		return append(tokens, targets...)
	}
	a, err := NewBatches(count(50), T, B, 1)
	require.NoError(t, err)
	for range 17 { // over several epochs
		next(a)
	}
	c, err := NewBatches(count(50), T, B, 1)
	require.NoError(t, err)
	require.NoError(t, c.Restore(a.State()))
	for range 20 {
		require.Equal(t, next(a), next(c))
	}
	require.Error(t, c.Restore(BatchState{Index: 1000}))
	other, err := NewBatches(count(50), T, B, 2)
	require.NoError(t, err)
	fresh, err := NewBatches(count(50), T, B, 1)
	require.NoError(t, err)
	require.NotEqual(t, next(fresh), next(other), "another seed is another order")
}

func TestWindowsCoverEachTargetOnce(t *testing.T) {
	for _, n := range []int{2, 5, 6, 7, 23, 64} {
		for _, context := range []int{0, 2} {
			const T, B = 5, 2
			w, err := NewWindows(count(n), T, B, context)
			require.NoError(t, err)
			for range 2 { // again after Reset
				seen := map[int32]bool{}
				tokens, targets := make([]int32, B*T), make([]int32, B*T)
				for kept := w.Next(tokens, targets); kept > 0; kept = w.Next(tokens, targets) {
					for i, v := range targets {
						if v == Ignored {
							continue
						}
						kept--
						require.Equal(t, tokens[i]+1, v)
						require.False(t, seen[v])
						seen[v] = true
					}
					require.Zero(t, kept)
				}
				require.Len(t, seen, n-1)
				require.Equal(t, n-1, w.Targets())
				w.Reset()
			}
		}
	}
	_, err := NewWindows(count(1), 5, 2, 0)
	require.Error(t, err)
}

func TestSplit(t *testing.T) {
	train, val, err := Split(count(100), 0.1, 8)
	require.NoError(t, err)
	require.Len(t, val, 10)
	require.Equal(t, count(100), append(append([]int32{}, train...), val...))
	_, val, err = Split(count(40), 0.01, 8)
	require.NoError(t, err)
	require.Len(t, val, 9, "one sequence and the token after it")
	_, _, err = Split(count(17), 0.5, 8)
	require.ErrorContains(t, err, "17")
}

func TestLoadText(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
		return path
	}
	empty, binary := write("empty.bin", ""), write("b.bin", "a\x00b")
	for _, path := range []string{filepath.Join(dir, "none.txt"), empty, binary} {
		_, err := LoadText(path)
		require.ErrorContains(t, err, filepath.Base(path))
		require.NotContains(t, err.Error(), "\n")
	}
	write("z/two.txt", "second\r\nline")
	write("a.txt", "\ufefffirst<|endoftext|>\nthird")
	write(".hidden/x.txt", "no")
	text, err := LoadText(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"first", "third", "second\nline"}, text.Docs)
	require.Equal(t, []string{"a.txt", "z/two.txt"}, text.Files)
	require.ElementsMatch(t, []string{"b.bin", "empty.bin"}, text.Skipped)
	write("bad.txt", "x\x00")
	_, err = LoadText(dir)
	require.ErrorContains(t, err, "bad.txt")
}

func TestTokensOfDocs(t *testing.T) {
	require.Equal(t, []int32{256, 'a', 256, 'b', 'c', 256}, Tokens(Byte{}, []string{"a", "bc"}))
}
