package graph

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares text with testdata/name.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run go test ./graph -update once the text is right")
	require.Equal(t, string(want), text)
}

// mlp is a small training step: two linear layers with an output norm fused with the residual add, cross-entropy, AdamW.
func mlp(t *testing.T) *Program { return mlpWith(t, nil) }

// mlpWith computes again what a function picks of the forward pass.
func mlpWith(t *testing.T, again func(v *Value) bool) *Program {
	b := NewBuilder()
	tokens := b.Input("tokens", I32, 2, 3)
	targets := b.Input("targets", I32, 2, 3)
	inv := b.Input("inv_count", F32, 1)
	hyper := b.Input("hyper", F32, HyperLen)
	emb := b.Var("emb", F32, 7, 4)
	up := b.Var("up", F32, 6, 4)
	down := b.Var("down", F32, 4, 6)
	gain := b.Var("gain", F32, 4)
	params := []*Value{emb, up, down, gain}

	end := b.Scope("mlp")
	x := b.Embedding(emb, tokens)
	h := b.GELU(b.Linear(x, up, nil))
	x = b.RMSNorm(b.Linear(h, down, nil), gain, x, 1e-6)
	end()
	logits := b.Linear(x, emb, nil) // tied
	losses, _ := b.CrossEntropy(logits, targets, nil, CrossEntropyAttr{})
	loss := b.Sum(losses, inv)
	for _, v := range b.values {
		if again != nil && again(v) {
			b.Recompute(v)
		}
	}
	one := b.Fill(b.Temp("one", F32, 1), 1)
	grads, err := b.Grad(loss, one, params, nil)
	require.NoError(t, err)
	partials := b.Temp("partials", F32, len(grads), SumSquaresParts)
	for i, g := range grads {
		b.SumSquares(g, b.View(partials, i*SumSquaresParts, SumSquaresParts))
	}
	norm, clip := b.ClipNorm(partials, nil, 1)
	for i, p := range params {
		m := b.Var("m."+p.Name(), F32, p.Shape()...)
		v := b.Var("v."+p.Name(), F32, p.Shape()...)
		b.AdamW(p, m, v, grads[i], hyper, clip, nil, AdamWAttr{Decay: 1})
	}
	b.Output("loss", loss)
	b.Output("grad_norm", norm)
	return b.Build("mlp")
}

func TestGoldenText(t *testing.T) {
	p := mlp(t)
	golden(t, "mlp.program.txt", p.String())
	golden(t, "mlp.plan.txt", NewPlan(p).String())
	golden(t, "mlp.recompute.txt", mlpWith(t, func(v *Value) bool { return strings.HasPrefix(v.name, "mlp.") && v.name != "mlp.rms_norm" }).String())
	golden(t, "mlp.inplace.txt", NewPlanWith(p, PlanOptions{InPlace: true}).String())
}

// The plan is checked against its definition: nodes of one group do not conflict, and whatever shares bytes is never alive
// in the same group.
func TestPlanIsSound(t *testing.T) {
	inPlace := 0
	for _, p := range []*Program{mlp(t), randomProgram(1), randomProgram(2), randomProgram(3), randomProgram(4)} {
		require.Zero(t, checkPlan(t, NewPlan(p)))
		inPlace += checkPlan(t, NewPlanWith(p, PlanOptions{InPlace: true}))
	}
	require.Positive(t, inPlace)
}

// checkPlan returns how many outputs take the place of an input at its last node, which is all that may share bytes in a group.
func checkPlan(t *testing.T, pl *Plan) (inPlace int) {
	p := pl.Program()
	group := 0
	first, last := map[*Value]int{}, map[*Value]int{}
	groups := map[int][]*Node{}
	for i, n := range p.Nodes() {
		if pl.Barrier(i) {
			group++
		}
		for _, v := range append(append([]*Value{}, n.In...), n.Out...) {
			if v == nil {
				continue
			}
			base, _ := v.Base()
			if _, ok := first[base]; !ok {
				first[base] = group
			}
			last[base] = group
		}
		for _, m := range groups[group] {
			for _, o := range n.Out {
				for _, v := range append(append([]*Value{}, m.In...), m.Out...) {
					require.False(t, sameBytes(o, v), "%s and %s are in one group", m, n)
				}
			}
			for _, o := range m.Out {
				for _, v := range n.In {
					require.False(t, sameBytes(o, v), "%s and %s are in one group", m, n)
				}
			}
		}
		groups[group] = append(groups[group], n)
	}
	for _, o := range p.Outputs() {
		base, _ := o.Value.Base()
		last[base] = len(p.Nodes()) + 1
	}
	var temps []*Value
	total := 0
	for _, v := range p.Values() {
		if v.Kind() == KindTemp && !v.IsView() {
			require.Zero(t, pl.Offset(v)%ArenaAlign)
			require.LessOrEqual(t, pl.Offset(v)+v.Bytes(), pl.ArenaBytes())
			temps = append(temps, v)
			total += alignUp(v.Bytes())
		}
	}
	for i, v := range temps {
		for _, w := range temps[:i] {
			apart := pl.Offset(v)+v.Bytes() <= pl.Offset(w) || pl.Offset(w)+w.Bytes() <= pl.Offset(v)
			if apart || last[v] < first[w] || last[w] < first[v] {
				continue
			}
			from, to := v, w
			if first[from] > first[to] {
				from, to = w, v
			}
			require.True(t, mayTakePlace(groups[first[to]], from, to) && last[from] == first[to] && pl.Offset(from) == pl.Offset(to),
				"%s and %s share bytes", v.Name(), w.Name())
			inPlace++
		}
	}
	require.LessOrEqual(t, pl.ArenaBytes(), total)
	require.LessOrEqual(t, pl.LiveBytes(), pl.ArenaBytes())
	return inPlace
}

// mayTakePlace tells whether one node of a group alone uses from, once, and writes to in a place that the operator table gives.
func mayTakePlace(group []*Node, from, to *Value) bool {
	uses, allowed := 0, false
	for _, n := range group {
		for _, v := range append(append([]*Value{}, n.In...), n.Out...) {
			if v != nil && sameBytes(v, from) {
				uses++
			}
		}
		for _, place := range n.Op.InPlace() {
			allowed = allowed || n.In[place.In] == from && n.Out[place.Out] == to
		}
	}
	return allowed && uses == 1 && from.Bytes() == to.Bytes()
}

func sameBytes(a, b *Value) bool {
	if a == nil || b == nil {
		return false
	}
	ba, oa := a.Base()
	bb, ob := b.Base()
	return ba == bb && oa < ob+b.Bytes() && ob < oa+a.Bytes()
}

// randomProgram chains random operators over values of random sizes.
func randomProgram(seed uint64) *Program {
	next := func(n int) int { // a linear congruential generator, enough to vary a program
		seed = seed*6364136223846793005 + 1442695040888963407
		return int(seed>>33) % n
	}
	b := NewBuilder()
	x := b.Input("x", F32, 5, 8)
	vals := []*Value{b.ReLU(x)}
	v := b.Var("acc", F32, 1)
	for range 60 {
		a := vals[next(len(vals))]
		switch next(5) {
		case 0:
			vals = append(vals, b.GELU(a))
		case 1:
			vals = append(vals, b.Linear(a, b.Var("w"+a.Name()+string(rune('a'+len(vals)%26))+string(rune('a'+len(vals)/26)), F32, 1+next(40), a.Shape().Last()), nil))
		case 2:
			b.Add(v, b.Sum(a, nil), v)
		case 3:
			vals = append(vals, b.Add(a, a, nil))
		case 4:
			b.Add(a, a, a)
		}
	}
	b.Output("y", vals[len(vals)-1])
	return b.Build("random")
}

func TestIndependentNodesHaveNoBarrier(t *testing.T) {
	b := NewBuilder()
	x := b.Input("x", F32, 4, 8)
	w := b.Var("w", F32, 8, 8)
	y := b.RMSNorm(x, nil, nil, 1e-6)
	q, k, v := b.Linear(y, w, nil), b.Linear(y, w, nil), b.Linear(y, w, nil)
	z := b.Add(b.Add(q, k, nil), v, nil)
	b.Output("z", z)
	pl := NewPlan(b.Build("qkv"))
	var got []bool
	for i := range pl.Program().Nodes() {
		got = append(got, pl.Barrier(i))
	}
	require.Equal(t, []bool{false, true, false, false, true, true}, got)
}

func TestViewsOfOneBufferAreIndependent(t *testing.T) {
	b := NewBuilder()
	x := b.Input("x", F32, 100)
	parts := b.Temp("parts", F32, 2*SumSquaresParts)
	b.SumSquares(x, b.View(parts, 0, SumSquaresParts))
	b.SumSquares(x, b.View(parts, SumSquaresParts, SumSquaresParts))
	norm, _ := b.ClipNorm(parts, nil, 1)
	b.Output("norm", norm)
	pl := NewPlan(b.Build("views"))
	require.False(t, pl.Barrier(1))
	require.True(t, pl.Barrier(2))
}

func TestDeadNodesAreDropped(t *testing.T) {
	b := NewBuilder()
	x := b.Input("x", F32, 3)
	y := b.ReLU(x)
	b.GELU(y)
	b.Output("y", y)
	p := b.Build("dead")
	require.Len(t, p.Nodes(), 1)
	require.Len(t, p.Values(), 2)
}

func TestGradErrors(t *testing.T) {
	b := NewBuilder()
	x := b.Var("x", F32, 3)
	other := b.Var("other", F32, 3)
	one := b.Fill(b.Temp("one", F32, 1), 1)
	loss := b.Sum(b.ReLU(x), nil)
	_, err := b.Grad(loss, one, []*Value{other}, nil)
	require.ErrorContains(t, err, `does not depend on "other"`)

	b = NewBuilder()
	x = b.Var("x", F32, 3)
	one = b.Fill(b.Temp("one", F32, 1), 1)
	norm, _ := b.ClipNorm(x, nil, 1)
	_, err = b.Grad(norm, one, []*Value{x}, nil)
	require.ErrorContains(t, err, "no gradient through")

	for _, measure := range []func(b *Builder, x *Value) *Value{
		func(b *Builder, x *Value) *Value { mean, _ := b.RowMoments(x); return mean },
		func(b *Builder, x *Value) *Value { return b.Summary(x, nil, nil, 1) },
		func(b *Builder, x *Value) *Value { return b.TopMagnitudes(x, nil, 2) },
		func(b *Builder, x *Value) *Value { return b.Dots(x, x, nil) },
		func(b *Builder, x *Value) *Value { return b.RowAngle(x, x) },
		func(b *Builder, x *Value) *Value { return b.RowNorms(x, nil, nil, RowNormsAttr{}) },
	} {
		b = NewBuilder()
		x = b.Var("x", F32, 2, 3)
		_, err = b.Grad(b.Sum(measure(b, b.ReLU(x)), nil), b.Fill(b.Temp("one", F32, 1), 1), []*Value{x}, nil)
		require.ErrorContains(t, err, "no gradient through")
	}

	b = NewBuilder()
	x = b.Var("x", F32, 1, 2, 4)
	one = b.Fill(b.Temp("one", F32, 1), 1)
	_, lse := b.Attention(x, x, x, nil, AttentionAttr{Heads: 1, KVHeads: 1, HeadDim: 4, Scale: 1})
	_, err = b.Grad(b.Sum(lse, nil), one, []*Value{x}, nil)
	require.ErrorContains(t, err, "no gradient through")
}

func TestMisusePanics(t *testing.T) {
	for name, f := range map[string]func(b *Builder){
		"graph: matmul":                                    func(b *Builder) { b.Linear(b.Input("x", F32, 2, 3), b.Input("w", F32, 2, 4), nil) },
		"graph: \"x\" has shape [0]":                       func(b *Builder) { b.Input("x", F32, 0) },
		"graph: the name \"x\" is taken":                   func(b *Builder) { b.Input("x", F32, 1); b.Input("x", F32, 1) },
		"graph: view [4] at element 1 of \"x\"":            func(b *Builder) { b.View(b.Var("x", F32, 100), 1, 4) },
		"graph: view [4] at element 128 of \"x\"":          func(b *Builder) { b.View(b.Var("x", F32, 100), 128, 4) },
		"graph: fill writes the input":                     func(b *Builder) { b.Fill(b.Input("x", F32, 3), 0) },
		"before it is written":                             func(b *Builder) { b.Output("y", b.ReLU(b.Temp("x", F32, 3))); b.Build("p") },
		"graph: recompute of \"x\", which is no temporary": func(b *Builder) { b.Recompute(b.Var("x", F32, 1)) },
		"graph: recompute of \"relu\", which is not written by one node alone": func(b *Builder) {
			x := b.Var("x", F32, 1)
			y := b.ReLU(x)
			b.Recompute(y)
			z := b.Sum(b.GELU(b.Add(y, y, y)), nil)
			_, _ = b.Grad(z, b.Fill(b.Temp("one", F32, 1), 1), []*Value{x}, nil)
		},
		"graph: recompute of \"relu\": its input \"add\" is overwritten": func(b *Builder) {
			x := b.Var("x", F32, 1)
			y := b.Add(x, x, nil)
			z := b.ReLU(y)
			b.Recompute(z)
			loss := b.Sum(b.GELU(z), nil)
			b.Fill(y, 0)
			_, _ = b.Grad(loss, b.Fill(b.Temp("one", F32, 1), 1), []*Value{x}, nil)
		},
		"is of another builder": func(b *Builder) { b.ReLU(NewBuilder().Input("x", F32, 3)) },
		"used after Build":      func(b *Builder) { b.Build("p"); b.Input("x", F32, 3) },
		"graph: attention: \"x\" has shape": func(b *Builder) { // heads that don't divide
			x := b.Input("x", F32, 1, 2, 12)
			b.Attention(x, x, x, nil, AttentionAttr{3, 2, 4, 1, 0})
		},
		"graph: attention of": func(b *Builder) { // neither a scale nor an operand for it
			x := b.Input("x", F32, 1, 2, 12)
			b.Attention(x, x, x, nil, AttentionAttr{3, 3, 4, 0, 0})
		},
		"graph: summary of \"x\" over a threshold of -1":     func(b *Builder) { b.Summary(b.Input("x", F32, 3), nil, nil, -1) },
		"graph: top_magnitudes: 129 of \"x\", want 1 to 128": func(b *Builder) { b.TopMagnitudes(b.Input("x", F32, 3), nil, 129) },
		"graph: row_angle of":                                func(b *Builder) { b.RowAngle(b.Input("x", F32, 3, 4), b.Input("y", F32, 2, 6)) },
		"graph: row_norms of":                                func(b *Builder) { b.RowNorms(b.Input("x", F32, 3, 4), nil, b.Input("y", F32, 4, 3), RowNormsAttr{}) },
		"graph: qk_norm_rope of":                             func(b *Builder) { b.QKNormRoPE(b.Input("x", F32, 1, 2, 9), nil, QKNormRoPEAttr{Heads: 3, HeadDim: 3}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				r := recover()
				require.NotNil(t, r)
				require.Contains(t, r.(string), name)
			}()
			f(NewBuilder())
		})
	}
}

// Every operator has a name and operands, and the gradients' accumulators are updated in place.
func TestOpTable(t *testing.T) {
	seen := map[string]bool{}
	for _, op := range Ops() {
		require.NotEmpty(t, op.String(), "op %d", op)
		require.False(t, seen[op.String()])
		seen[op.String()] = true
		in, out := op.Operands()
		require.NotEmpty(t, out)
		for _, place := range op.InPlace() {
			require.Less(t, place.In, len(in))
			require.Less(t, place.Out, len(out))
			require.GreaterOrEqual(t, min(place.In, place.Out), 0, "%s names an operand that it has not", op)
		}
	}
	require.Equal(t, "invalid", NumOps.String())
}

func TestAccumulators(t *testing.T) {
	b := NewBuilder()
	x := b.Var("x", F32, 2, 4)
	w := b.Var("w", F32, 4, 4)
	gain := b.Var("gain", F32, 4)
	gw, gg := b.Var("grad.w", F32, 4, 4), b.Var("grad.gain", F32, 4)
	one := b.Fill(b.Temp("one", F32, 1), 1)
	loss := b.Sum(b.RMSNorm(b.Linear(x, w, nil), gain, nil, 1e-6), nil)
	grads, err := b.Grad(loss, one, []*Value{w, gain}, map[*Value]*Value{w: gw, gain: gg})
	require.NoError(t, err)
	require.Equal(t, []*Value{gw, gg}, grads)
	n := 0
	for _, node := range b.Build("acc").Nodes() {
		if node.Op == OpMatMul && node.Out[0] == gw || node.Op == OpSumRows && node.Out[0] == gg {
			require.Equal(t, node.Out[0], node.In[len(node.In)-1], "accumulates in place")
			n++
		}
	}
	require.Equal(t, 2, n)
}
