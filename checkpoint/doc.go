// Package checkpoint keeps models on disk: a reader and a writer of safetensors files, and the folder that a training run leaves.
//
// A safetensors file is an 8-byte little-endian length, a JSON header of that length that gives each tensor's format, shape and
// bytes, and the tensors' bytes, little-endian, row-major, one after the other without gaps. The reader takes nothing on
// trust: a header that does not describe its file exactly is an error, whoever wrote it.
//
// A checkpoint folder holds
//
//	model.safetensors  the parameters, by name
//	config.json        Info: the model's config, the tokenizer's kind, how far training was
//	tokenizer.json     the tokenizer, written by its own package
//
// Each file is replaced as a whole or not at all. Files beside these are left alone.
package checkpoint
