package train

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/vktrain/vktrain/data"
	"github.com/vktrain/vktrain/graph"
)

// Dataset is a run's text: a tokenizer, training batches without end, and validation batches.
type Dataset struct {
	Name      string // of the file or folder, without what a path can't hold; "stories" for the built-in corpus
	Tokenizer data.Tokenizer
	Floor     *Floor  // nil unless the source's entropy is known
	Unigram   float64 // entropy of the training tokens taken one by one, in nats per token

	TrainTokens, ValTokens int
	BytesPerToken          float64  // of the validation text
	Skipped                []string // files of the folder that are no text

	lengthPercentile int // of qk_scale_percentile

	cfg     Config
	batches *data.Batches
	val     []Batch
}

const (
	// shortText is the length in bytes under which a BPE would learn more of the text's words than of its language.
	shortText = 32 << 10
	// tokenizerText is how much of the built-in corpus its BPE is trained on, whatever the run's length.
	tokenizerText = 1 << 20
	// The built-in corpus has no end. A run takes about the text that it will read, within these bounds.
	leastStories, mostStories = 2 << 20, 32 << 20
	// bytesPerStoryToken is a high guess, to size the text before it is tokenized.
	bytesPerStoryToken = 5
	// wholeStories is the validation text when eval_batches gives no bound.
	wholeStories = 256 << 10
)

// OpenDataset reads or makes the text of a config, trains the tokenizer and cuts both parts into sequences. When ctx is done it returns ctx's
// error at once, and what it was at comes to its end unseen.
func OpenDataset(ctx context.Context, cfg Config) (*Dataset, error) {
	d := &Dataset{cfg: cfg}
	type end struct {
		err    error
		broken any // by a panic, which is the caller's
	}
	done := make(chan end, 1)
	go func() {
		var e end
		defer func() {
			e.broken = recover()
			done <- e
		}()
		e.err = d.open()
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case e := <-done:
		if e.broken != nil {
			panic(e.broken)
		}
		return d, e.err
	}
}

func (d *Dataset) open() error {
	if d.cfg.Data.Path == "" {
		return d.openStories()
	}
	return d.openText()
}

// openStories takes the built-in corpus: training and validation text come from streams of their own.
func (d *Dataset) openStories() error {
	d.Name = "stories"
	stories := data.NewStories(d.cfg.Seed, "train")
	train := stories.Docs(tokenizerText)
	if err := d.makeTokenizer(train); err != nil {
		return err
	}
	train = append(train, stories.Docs(d.storyBytes()-tokenizerText)...)
	tokens := data.Tokens(d.Tokenizer, train)
	if err := d.useTraining(tokens); err != nil {
		return err
	}
	source := data.NewStories(d.cfg.Seed, "validation")
	val := source.Docs(d.valStoryBytes(float64(textBytes(train)) / float64(len(tokens))))
	valTokens := data.Tokens(d.Tokenizer, val)
	d.Floor = &Floor{Expected: source.Floor(d.Tokenizer), Realised: -source.LogProb() / float64(len(valTokens)-1)}
	return d.useValidation(valTokens, textBytes(val), 0)
}

// storyBytes is how much training text a run takes: a power of two, so that runs of about one length share it.
func (d *Dataset) storyBytes() int {
	need := math.Min(float64(d.cfg.Steps)*float64(d.cfg.TokensPerStep())*bytesPerStoryToken, mostStories)
	n := leastStories
	for float64(n) < need {
		n *= 2
	}
	return n
}

// valStoryBytes is how much validation text a run takes: as much as its evaluation reads, so that the floor is that of the very tokens that the
// loss is of.
func (d *Dataset) valStoryBytes(bytesPerToken float64) int {
	if d.cfg.EvalBatches == 0 {
		return wholeStories
	}
	targets := float64(d.cfg.EvalBatches) * float64(d.cfg.Batch) * float64(d.cfg.SeqLen-d.evalContext())
	return int(math.Min(math.Max(1, targets*bytesPerToken), mostStories))
}

// openText reads a file or folder.
func (d *Dataset) openText() error {
	d.Name = fileName(d.cfg.Data.Path)
	text, err := data.LoadText(d.cfg.Data.Path)
	if err != nil {
		return err
	}
	d.Skipped = text.Skipped
	train, val := data.SplitDocs(text.Docs, d.cfg.Data.ValFraction)
	if err := d.makeTokenizer(train); err != nil {
		return err
	}
	if err := d.useTraining(data.Tokens(d.Tokenizer, train)); err != nil {
		return fmt.Errorf("%s: %w", d.cfg.Data.Path, err)
	}
	if err := d.useValidation(data.Tokens(d.Tokenizer, val), textBytes(val), d.cfg.EvalBatches); err != nil {
		return fmt.Errorf("%s: %w", d.cfg.Data.Path, err)
	}
	return nil
}

// fileName makes a path's last part fit for another path.
func fileName(path string) string {
	base := filepath.Base(filepath.Clean(path))
	base = strings.TrimSuffix(base, filepath.Ext(base))
	name := strings.Trim(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '.' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, base), "._")
	if name == "" {
		return "text"
	}
	return name
}

func textBytes(docs []string) int {
	n := 0
	for _, doc := range docs {
		n += len(doc)
	}
	return n
}

func (d *Dataset) makeTokenizer(train []string) error {
	kind := d.cfg.Data.Tokenizer
	if kind == TokenizerAuto && textBytes(train) < shortText {
		kind = TokenizerByte
	}
	if kind == TokenizerByte {
		d.Tokenizer = data.Byte{}
		return nil
	}
	bpe, err := data.TrainBPE(train, d.cfg.Data.VocabSize)
	if err != nil {
		return err
	}
	d.Tokenizer = bpe
	return nil
}

func (d *Dataset) useTraining(tokens []int32) (err error) {
	d.TrainTokens = len(tokens)
	if p := d.cfg.QKScalePercentile; p > 0 {
		d.lengthPercentile = lengthPercentile(tokens, d.Tokenizer.EndOfText(), p)
	}
	d.Unigram = data.UnigramEntropy(tokens, d.Tokenizer.VocabSize())
	d.batches, err = data.NewBatches(tokens, d.cfg.SeqLen, d.cfg.Batch, d.cfg.Seed)
	return err
}

// lengthPercentile is the nearest-rank percentile of the documents' lengths in tokens, their ends not counted: 0 where there is none.
func lengthPercentile(tokens []int32, end int32, percentile float64) int {
	var lengths []int
	n := 0
	for _, id := range tokens {
		switch {
		case id != end:
			n++
		case n > 0:
			lengths = append(lengths, n)
			n = 0
		}
	}
	if len(lengths) == 0 {
		return n
	}
	slices.Sort(lengths)
	rank := int(math.Ceil(percentile / 100 * float64(len(lengths))))
	return lengths[max(1, rank)-1]
}

// evalContext is how many tokens of a validation window are there only to be seen: half, so that every target but the first few has
// half a window before it.
func (d *Dataset) evalContext() int { return d.cfg.SeqLen / 2 }

// useValidation cuts the validation tokens into at most so many batches; 0: all of them.
func (d *Dataset) useValidation(tokens []int32, bytes, most int) error {
	windows, err := data.NewWindows(tokens, d.cfg.SeqLen, d.cfg.Batch, d.evalContext())
	if err != nil {
		return err
	}
	d.ValTokens = len(tokens)
	d.BytesPerToken = float64(bytes) / float64(len(tokens)-1)
	for most == 0 || len(d.val) < most {
		b := d.newBatch()
		if windows.Next(b.Tokens, b.Targets) == 0 {
			break
		}
		d.val = append(d.val, b)
	}
	return nil
}

func (d *Dataset) newBatch() Batch {
	n := d.cfg.Batch * d.cfg.SeqLen
	return Batch{Tokens: make([]int32, n), Targets: make([]int32, n)}
}

// TrainBatch gives the next micro-batch.
func (d *Dataset) TrainBatch() Batch {
	b := d.newBatch()
	d.batches.Next(b.Tokens, b.Targets)
	return b
}

// Position is the place in the stream of training batches.
func (d *Dataset) Position() data.BatchState { return d.batches.State() }

// ValBatches are the micro-batches of an evaluation; they must not be changed.
func (d *Dataset) ValBatches() []Batch { return d.val }

// First is the text of the first sequence that a run of this config trains on, decoded from the very tokens that the model is fed.
func (d *Dataset) First() (string, error) {
	fresh := *d.batches
	if err := fresh.Restore(data.BatchState{}); err != nil {
		return "", err
	}
	b := d.newBatch()
	fresh.Next(b.Tokens, b.Targets)
	return d.Tokenizer.Decode(b.Tokens[:d.cfg.SeqLen]), nil
}

// BitsPerByte turns a loss in nats per token into bits per byte of text, which compares models with different tokenizers.
func (d *Dataset) BitsPerByte(loss float64) float64 { return loss / math.Ln2 / d.BytesPerToken }

// The two packages' marks for a target that is left out are one number.
var _ = [1]struct{}{}[graph.IgnoreTarget-data.Ignored]
