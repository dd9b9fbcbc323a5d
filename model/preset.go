package model

import "fmt"

// cl100kVocab is the size of the cl100k_base vocabulary of the paper's models.
const cl100kVocab = 100277

// presets are the named models, the smallest first, and after them those that only benchmarks use. Where vocab_size is 0 it is the tokenizer's, and
// the number of parameters is given for one of 1024 (nano, tiny) or 2048 (small) tokens.
var presets = []struct {
	name   string
	config func() Config
}{
	{"nano", func() Config { return sized(96, 3, 6, 256, 128) }},    // 0.53 M
	{"tiny", func() Config { return sized(192, 6, 6, 512, 128) }},   // 3.05 M
	{"small", func() Config { return sized(384, 8, 6, 1024, 256) }}, // 15.74 M

	// GPT-2's smallest size, 123.6 M: its width, depth, heads, vocabulary and tied head, with this model's block. Three matrices of
	// 8D/3 in the MLP are as large as GPT-2's two of 4D.
	{"gpt2", func() Config {
		c := sized(768, 12, 12, 2048, 1024)
		c.VocabSize, c.Tied = 50257, true
		return c
	}},

	{"peri-400m", func() Config { return paper(1024, 24, 8, 128) }},
	{"peri-1.5b", func() Config { return paper(2048, 24, 16, 128) }},
	{"peri-3.2b", func() Config { return paper(2560, 32, 16, 160) }},

	// Sizes at which vktrain's speed is compared with that of others: 0.86, 13.8, 123.6 and 4.26 M.
	{"bench-a", func() Config { return bench(256, 128, 4, 4, 344, 128, false) }},
	{"bench-b", func() Config { return bench(4096, 384, 6, 6, 1024, 256, false) }},
	{"bench-c", func() Config { return bench(50304, 768, 12, 12, 2048, 256, true) }},
	{"bench-g", func() Config { return bench(2048, 256, 4, 4, 704, 128, false) }}, // of a training step that was measured with ggml
}

func sized(d, layers, heads, ff, seqLen int) Config {
	c := Default()
	c.DModel, c.NLayers, c.NHeads, c.DFF, c.SeqLen = d, layers, heads, ff, seqLen
	return c.Normalize()
}

func bench(vocab, d, layers, heads, ff, seqLen int, tied bool) Config {
	c := sized(d, layers, heads, ff, seqLen)
	c.VocabSize, c.Tied = vocab, tied
	return c
}

// paper gives the sizes of Kim et al. 2025, table 2: width, layers, heads, head_dim, init 0.02, sequences of 8192 tokens. The table
// does not give d_ff, the number of key and value heads, or whether the head is tied. Inferred: d_ff = 4D and 8 key and value heads, which give
// 0.403, 1.510 and 3.146 B in the blocks (d_ff = 3.75D and a key and value head for each query head would give 0.384, 1.535 and
// 3.198 B), a separate head, no embedding norm, no QK-Norm, and norm_eps, l2_eps and rope_theta at this package's defaults.
func paper(d, layers, heads, headDim int) Config {
	c := Default()
	c.VocabSize, c.DModel, c.NLayers, c.NHeads, c.HeadDim = cl100kVocab, d, layers, heads, headDim
	c.NKVHeads, c.DFF, c.SeqLen = 8, 4*d, 8192
	c.QKNorm, c.Init = QKNormNone, InitNormal002
	return c.Normalize()
}

// Preset returns the named model.
func Preset(name string) (Config, error) {
	for _, p := range presets {
		if p.name == name {
			return p.config(), nil
		}
	}
	return Config{}, fmt.Errorf("preset: %q is unknown: use %s", name, orList(PresetNames()))
}

// PresetNames lists the presets, the smallest first, and then those of benchmarks.
func PresetNames() []string {
	names := make([]string, len(presets))
	for i, p := range presets {
		names[i] = p.name
	}
	return names
}
