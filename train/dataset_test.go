package train

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/data"
)

func TestStoriesHaveAFloor(t *testing.T) {
	d, err := OpenDataset(context.Background(), smallRun(t).Resolve())
	require.NoError(t, err)
	require.Equal(t, "stories", d.Name)
	require.NotNil(t, d.Floor)
	require.Less(t, d.Floor.Expected, d.Unigram/2, "the grammar is worth knowing")
	require.InEpsilon(t, d.Floor.Expected, d.Floor.Realised, 0.5, "this validation text is very short")
	kept := 0
	for _, b := range d.ValBatches() {
		kept += b.kept()
	}
	require.Equal(t, d.ValTokens-1, kept, "the floor is of the very tokens that are evaluated")
	first, err := d.First()
	require.NoError(t, err)
	b := d.TrainBatch()
	require.Equal(t, first, d.Tokenizer.Decode(b.Tokens[:16]))
	require.Equal(t, b.Tokens[1:16], b.Targets[:15])
	require.Equal(t, 2, d.Position().Index)
}

func TestTextsAndTheirTokenizers(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "my text.v2.txt")
	write := func(s string) { require.NoError(t, os.WriteFile(file, []byte(s), 0o666)) }
	write(strings.Repeat("a line of some text\n", 200))
	d, err := OpenDataset(context.Background(), smallRun(t, "data.path="+file).Resolve())
	require.NoError(t, err)
	require.Equal(t, "my_text.v2", d.Name)
	require.Equal(t, data.KindByte, d.Tokenizer.Kind(), "too short for a BPE")
	require.Nil(t, d.Floor)
	require.InDelta(t, 1, d.BytesPerToken, 0.01)
	require.InDelta(t, 1, d.BitsPerByte(0.693), 0.01)
	require.Len(t, d.ValBatches(), 2, "eval_batches is the most")
	d, err = OpenDataset(context.Background(), smallRun(t, "data.path="+file, "eval_batches=0").Resolve())
	require.NoError(t, err)
	require.Greater(t, len(d.ValBatches()), 2)
	d, err = OpenDataset(context.Background(), smallRun(t, "data.path="+dir, "data.tokenizer=bpe").Resolve())
	require.NoError(t, err)
	require.Equal(t, data.KindBPE, d.Tokenizer.Kind())

	write("short")
	_, err = OpenDataset(context.Background(), smallRun(t, "data.path="+file).Resolve())
	require.ErrorContains(t, err, "give more text or a smaller seq_len")
	write("")
	_, err = OpenDataset(context.Background(), smallRun(t, "data.path="+file).Resolve())
	require.ErrorContains(t, err, "is empty")
	_, err = OpenDataset(context.Background(), smallRun(t, "data.path="+filepath.Join(dir, "absent")).Resolve())
	require.ErrorContains(t, err, "does not exist")
}

func TestLongerRunsTakeMoreStories(t *testing.T) {
	size := func(steps string) int {
		c := smallRun(t, "steps="+steps, "batch=512", "seq_len=1024").Resolve()
		return (&Dataset{cfg: c}).storyBytes()
	}
	require.Equal(t, 4<<20, size("1"))
	require.Equal(t, 16<<20, size("6"))
	require.Equal(t, mostStories, size("1000000"))
}

func TestStoriesAreBounded(t *testing.T) {
	for _, x := range []struct{ batches, want int }{{0, wholeStories}, {1, 4 * 4 * 32}, {1_000_000, mostStories}, {maxCount, mostStories}} {
		d := Dataset{cfg: Config{EvalBatches: x.batches, Batch: 4, SeqLen: 64}}
		require.Equal(t, x.want, d.valStoryBytes(4))
	}
	d := Dataset{cfg: Config{Steps: maxCount, Batch: maxCount, SeqLen: 1, Accumulation: 1}}
	require.Equal(t, mostStories, d.storyBytes())
}

func TestOpenDatasetGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := OpenDataset(ctx, smallRun(t).Resolve())
	require.ErrorIs(t, err, context.Canceled)
	require.PanicsWithValue(t, "data: batch or sequence length under 1", func() {
		_, _ = OpenDataset(context.Background(), Config{Data: DataConfig{Tokenizer: TokenizerByte}, SeqLen: 8})
	}, "a panic comes to the caller")
}
