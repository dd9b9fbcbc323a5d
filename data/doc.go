// Package data is what a model learns from: text, the tokens it becomes, and the batches they are dealt out in. It knows nothing of models
// and devices.
//
//	text -> documents      LoadText, or the built-in corpus: NewStories
//	documents -> two parts SplitDocs, before a tokenizer is trained
//	documents -> tokens    a Tokenizer: Byte, TrainBPE, LoadTokenizer; Tokens joins documents to one sequence
//	tokens -> batches      NewBatches for training, NewWindows for validation
//
// A run on a text file, without its error checks:
//
//	text, err := data.LoadText("book.txt")
//	train, val := data.SplitDocs(text.Docs, 0.1)
//	tok, err := data.TrainBPE(train, 512)
//	batches, err := data.NewBatches(data.Tokens(tok, train), seqLen, batch, seed)
//	windows, err := data.NewWindows(data.Tokens(tok, val), seqLen, batch, seqLen/2)
//
// and on the built-in corpus, whose entropy is known:
//
//	train := data.NewStories(seed, "train").Docs(3 << 20)
//	stories := data.NewStories(seed, "validation")
//	val := stories.Docs(200 << 10)
//	tokens := data.Tokens(tok, val)
//	floor := -stories.LogProb() / float64(len(tokens)-1) // of this text; stories.Floor(tok) is that of all stories
//
// # Tokens
//
// A token is an int32 from 0 to VocabSize-1, everywhere. A sequence of documents is end-of-text, document, end-of-text, document, ...,
// end-of-text: the first token is given, and all others can be predicted. Text never becomes end-of-text, not even where it spells
// <|endoftext|>: only LoadText looks for that word, and parts documents there.
//
// # Shapes and ownership
//
// Batches are row-major (B, T): token t of sequence b is at b*T+t, and its target is the token after it. Callers own the slices they pass
// to Next. Token slices given to NewBatches and NewWindows are kept and must not change. Tokenizers are safe for use by several
// goroutines at once; Batches, Windows and Stories are not.
//
// # Determinism
//
// Everything here is a function of its arguments: the same text, sizes and seed give the same tokenizer, tokens and batches on every
// machine. Random numbers come from package rng.
//
// # Errors
//
// What comes from the world (files, sizes that users choose) gives errors of one line that say what to do. Misuse by a program panics
// with "data: reason".
package data
