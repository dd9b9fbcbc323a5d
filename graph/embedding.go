package graph

// Embedding looks tokens up: y[r] = table[tokens[r]].
//
//	table  (V, D)
//	tokens (...) i32
//	y      (..., D), in the table's format
//
// A token outside 0..V-1 gives a row of NaN and no gradient.
func (b *Builder) Embedding(table, tokens *Value) *Value {
	return b.EmbeddingAs(table, tokens, table.dtype)
}

// EmbeddingAs is Embedding with the rows in a format of their own.
func (b *Builder) EmbeddingAs(table, tokens *Value, d DType) *Value {
	wantFloat(OpEmbedding, table)
	if len(table.shape) != 2 || tokens.dtype != I32 {
		misuse("embedding of %s%v in %v", tokens.dtype, tokens.shape, table.shape)
	}
	y := b.Temp("embedding", d, append(append(Shape{}, tokens.shape...), table.shape[1])...)
	b.node(OpEmbedding, []*Value{table, tokens}, []*Value{y}, nil)
	return y
}

// EmbeddingGrad sums the rows of dy by token, in the order of the rows: dtable[v] = addend[v] + sum over r with
// tokens[r] == v of dy[r]. A nil addend is zero; an addend must be dst itself.
//
//	tokens (...) i32, R elements
//	dy     (R, D)
//	dtable (V, D) f32
func (b *Builder) EmbeddingGrad(tokens, dy, addend, dst *Value, vocab int) *Value {
	wantFloat(OpEmbeddingGrad, dy)
	d := dy.shape.Last()
	wantElems(OpEmbeddingGrad, dy.shape.Rows(), tokens)
	g := b.out(OpEmbeddingGrad, dst, "embedding_grad", F32, Shape{vocab, d})
	if addend != nil && addend != g {
		misuse("embedding_grad: the addend must be the output")
	}
	b.node(OpEmbeddingGrad, []*Value{tokens, dy, addend}, []*Value{g}, nil)
	return g
}

func gradEmbedding(s *gradState, n *Node, dy []*Value) {
	table, tokens := n.In[0], n.In[1]
	if !s.wants(table) {
		return
	}
	s.giveInPlace(table, func(addend, dst *Value) *Value {
		return s.b.EmbeddingGrad(tokens, dy[0], addend, dst, table.shape[0])
	})
}
