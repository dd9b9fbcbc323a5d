// Package model is the transformer: its configuration, its parameters and their initial values, and the forward pass as nodes
// of a graph.Builder.
//
// It is a decoder in the style of Llama 3: token embedding, N blocks of attention (RoPE, grouped key and value heads) and
// an MLP, a final norm, a head; no biases. Where norms stand is configured by three independent positions of each of a block's two
// modules M ([Positions]):
//
//	post   x = N(x + M(x))              C
//	pre    x = x + M(N(x))              A
//	peri   x = x + No(M(Ni(x)))         A+B (Kim et al. 2025, eq. 3)
//	olmo2  x = x + No(M(x))             B
//
// Parameters have the names of Hugging Face's Llama where it has them, every projection is [out, in] and is applied as y = x Wᵀ.
package model
