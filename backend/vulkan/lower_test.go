package vulkan

import (
	"errors"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/shaders"
)

// floorCaps is the least device of a kind.
func floorCaps(kind backend.Kind) *deviceCaps {
	return &deviceCaps{
		name: "test", kind: kind, maxInvocations: floorInvocations, maxGroupSize: [3]uint32{256, 256, 64},
		maxGroups: [3]uint32{65535, 65535, 65535}, sharedBytes: floorShared, maxBindBytes: 128 << 20,
	}
}

// roomyCaps is a usual device of a kind, without subgroup operations.
func roomyCaps(kind backend.Kind) *deviceCaps {
	d := floorCaps(kind)
	d.maxInvocations, d.sharedBytes = 1024, 32<<10
	return d
}

// everyOp has a node of each operator, and of each choice that its lowering makes.
func everyOp(t *testing.T) *graph.Program {
	b := graph.NewBuilder()
	in := func(name string, shape ...int) *graph.Value { return b.Input(name, graph.F32, shape...) }
	tokens := b.Input("tokens", graph.I32, 2, 40)
	one := in("one", 1)
	table := in("table", 4000, 96)
	x := b.Embedding(table, tokens)
	gain := in("gain", 96)
	var loss *graph.Value
	add := func(v *graph.Value) {
		s := b.Sum(v, nil)
		if loss == nil {
			loss = s
			return
		}
		loss = b.Add(loss, s, nil)
	}
	wide := x
	for _, x := range []*graph.Value{wide, b.EmbeddingAs(table, tokens, graph.BF16)} {
		add(b.RMSNorm(x, gain, x, 1e-6))
		add(b.LayerNorm(x, nil, nil, 1e-6))
		for _, dim := range []int{24, 96} {
			for _, norm := range []graph.QKNorm{graph.QKNone, graph.QKRMS, graph.QKLayerNorm, graph.QKL2} {
				at := graph.QKNormRoPEAttr{Norm: norm, Heads: 96 / dim, HeadDim: dim, Eps: 1e-6, Theta: 1e4}
				var g *graph.Value
				if norm == graph.QKRMS {
					g = b.View(gain, 0, dim)
				}
				q := b.QKNormRoPE(x, g, at)
				o, _ := b.Attention(q, q, x, one, graph.AttentionAttr{Heads: at.Heads, KVHeads: at.Heads, HeadDim: dim, SoftCap: 5})
				add(o)
				o, _ = b.Attention(q, x, x, nil, graph.AttentionAttr{Heads: at.Heads, KVHeads: at.Heads, HeadDim: dim, Scale: 0.1})
				add(o)
				o, _, _, _ = b.AttentionStats(q, q, x, nil, graph.AttentionAttr{Heads: at.Heads, KVHeads: at.Heads, HeadDim: dim, Scale: 0.1})
				add(o)
			}
		}
		add(b.Softmax(x))
		add(b.SwiGLU(x, x))
		add(b.GELU(x))
		add(b.ReLU(x))
		add(b.SoftCap(x, 5))
		diagnostics(b, x)
	}
	for _, w := range []*graph.Value{in("w_small", 32, 96), in("w_large", 4096, 96), in("w_huge", 1<<14, 96)} {
		add(b.Linear(x, w, nil))
	}
	add(b.Linear(in("few", 3, 96), in("w_many", 300, 96), nil))
	narrow := b.Cast(x, graph.BF16)
	for _, x := range []*graph.Value{x, narrow} {
		losses, _ := b.CrossEntropy(b.Linear(x, table, nil), tokens, nil, graph.CrossEntropyAttr{ZLoss: 1e-4})
		loss = b.Add(loss, b.Sum(losses, one), nil)
	}
	grads, err := b.Grad(loss, one, []*graph.Value{table, gain, one}, nil)
	require.NoError(t, err)
	partials := b.SumSquares(grads[0], nil)
	_, clip := b.ClipNorm(partials, one, 1)
	p, m, v := b.Var("p", graph.F32, 4000, 96), b.Var("m", graph.F32, 4000, 96), b.Var("v", graph.F32, 4000, 96)
	hyper := in("hyper", graph.HyperLen)
	b.AdamW(p, m, v, grads[0], hyper, clip, nil, graph.AdamWAttr{Decay: 1})
	half := b.Var("p in bf16", graph.BF16, 4000, 96)
	for _, key := range []*graph.Value{nil, b.Input("key", graph.I32, graph.KeyLen)} {
		b.AdamW(half, m, v, grads[0], hyper, clip, key, graph.AdamWAttr{Decay: 1})
	}
	add(b.RMSNorm(narrow, gain, x, 1e-6))
	add(b.Linear(narrow, b.Cast(table, graph.F16), nil))
	b.Output("loss", loss)
	b.Output("fill", b.Fill(b.Temp("fill", graph.F32, 3), 1))
	b.Output("narrow", b.Add(narrow, b.Fill(b.Temp("fill", graph.BF16, narrow.Shape()...), 1), nil))
	b.Output("gain", grads[1])
	b.Output("scale", grads[2])
	b.Output("cast", b.Cast(b.Cast(b.Cast(x, graph.BF16), graph.F16), graph.F32))
	return b.Build("every op")
}

// diagnostics has those operators on a tensor.
func diagnostics(b *graph.Builder, x *graph.Value) {
	name := "diagnostics " + x.DType().String()
	mean, variance := b.RowMoments(x)
	b.Output(name+" moments", b.Add(mean, variance, nil))
	b.Output(name+" summary", b.Summary(x, nil, nil, 1))
	b.Output(name+" summary of a difference", b.Summary(x, x, nil, 1))
	b.Output(name+" top", b.TopMagnitudes(x, nil, 100))
	b.Output(name+" dots", b.Dots(x, x, nil))
	b.Output(name+" angle", b.RowAngle(x, x))
	b.Output(name+" norms", b.RowNorms(x, nil, x, graph.RowNormsAttr{}))
	b.Output(name+" products", b.RowNorms(x, x, nil, graph.RowNormsAttr{Centered: true}))
	one := func(what string) *graph.Value { return b.Var(what+" of "+name, graph.F32, x.Elems()) }
	p, clip := b.Var("p of "+name, x.DType(), x.Elems()), b.Fill(b.Temp(name+" clip", graph.F32, 1), 1)
	hyper := b.Fill(b.Temp(name+" hyper", graph.F32, graph.HyperLen), 1)
	b.Output(name+" adamw", b.AdamWStats(p, one("m"), one("v"), one("g"), hyper, clip, nil, graph.AdamWAttr{Decay: 1}))
}

// everyLaunch is every dispatch of a program on several kinds of devices, with its node.
func everyLaunch(t *testing.T, p *graph.Program) (nodes []*graph.Node, launches []dispatch) {
	t.Helper()
	devices := []*deviceCaps{
		floorCaps(backend.Discrete), floorCaps(backend.Software), roomyCaps(backend.Discrete), roomyCaps(backend.Software),
	}
	for _, d := range []*deviceCaps{floorCaps(backend.Discrete), roomyCaps(backend.Discrete)} { // where the table goes in parts
		d.maxBindBytes = 1 << 20
		devices = append(devices, d)
	}
	for _, size := range []uint32{4, 8} {
		d := floorCaps(backend.Software)
		d.subgroupBallot, d.subgroupSize = true, size
		devices = append(devices, d)
	}
	for _, d := range devices {
		for _, n := range p.Nodes() {
			list, err := lowerNode(d, n)
			require.NoError(t, err)
			for _, dis := range list {
				dis.kernel = d.variant(dis.kernel, lookupShader)
				require.NoError(t, d.checkKernel(n, dis.kernel, lookupShader))
				_, err := checkDispatch(d, dis, lookupShader)
				require.NoError(t, err)
				nodes, launches = append(nodes, n), append(launches, dis)
			}
		}
	}
	return nodes, launches
}

func TestEveryOpHasALowering(t *testing.T) {
	inProgram := map[graph.Op]bool{}
	for _, n := range everyOp(t).Nodes() {
		inProgram[n.Op] = true
	}
	for _, op := range graph.Ops() {
		require.NotNil(t, lowerings[op], "%s has no lowering", op)
		require.True(t, inProgram[op], "the test program has no %s", op)
	}
}

// matrixCaps is a GPU with cooperative matrices, of one size of subgroups.
func matrixCaps(width uint32) *deviceCaps {
	d := roomyCaps(backend.Discrete)
	d.float16, d.subgroupSize, d.minSubgroupSize, d.maxSubgroupSize = true, width, width, width
	d.matrices = []matrixShape{{16, 16, 16, graph.F16}, {16, 16, 16, graph.BF16}}
	return d
}

// product is a matmul of two matrices of a format.
func product(format graph.DType, m, n, k int) *graph.Node {
	b := graph.NewBuilder()
	b.Output("c", b.MatMul(b.Input("a", format, m, k), b.Input("b", format, k, n), nil, nil, graph.MatMulAttr{}))
	return b.Build("product").Nodes()[0]
}

// A push-constant block and the struct that fills it are the same thing written twice; so are a node's operands and the bindings that a kernel
// reads and writes.
func TestLaunchesFitTheirKernels(t *testing.T) {
	nodes, launches := everyLaunch(t, everyOp(t))
	for _, op := range subgroupTestOps {
		p := subgroupTestProgram()
		test, err := lowerSubgroupTest(op.name, 0)(roomyCaps(backend.Discrete), p.Nodes()[0])
		require.NoError(t, err)
		nodes, launches = append(nodes, p.Nodes()[0]), append(launches, test[0])
	}
	for _, d := range []*deviceCaps{floorCaps(backend.Discrete), roomyCaps(backend.Discrete)} {
		for _, m := range []int{3, 20, 60, 2048} { // every tile, with operands of 16 bits
			n := product(graph.BF16, m, 4096, 63)
			nodes, launches = append(nodes, n), append(launches, d.matMul(n, d.ruleForMatMul(n))[0])
		}
	}
	for _, d := range []*deviceCaps{matrixCaps(32), matrixCaps(64)} {
		for _, format := range []graph.DType{graph.F16, graph.BF16} {
			for _, size := range []int{60, 2048} {
				n := product(format, size, size, size)
				list := d.matMul(n, d.ruleForMatMul(n))
				nodes, launches = append(nodes, n), append(launches, list[0])
			}
		}
	}
	for p, lower := range map[*graph.Program]lowerFunc{fmaProgram(3): lowerFMA(3, fmaPush{}), triadProgram(4096): lowerTriad(1)} {
		for _, d := range []*deviceCaps{floorCaps(backend.Discrete), roomyCaps(backend.Discrete)} {
			loops, err := lower(d, p.Nodes()[0])
			require.NoError(t, err)
			loops[0].kernel = d.variant(loops[0].kernel, lookupShader)
			nodes, launches = append(nodes, p.Nodes()[0]), append(launches, loops[0])
		}
	}
	for _, d := range []*deviceCaps{floorCaps(backend.Discrete), roomyCaps(backend.Discrete)} {
		for _, format := range []graph.DType{graph.F32, graph.BF16} {
			for _, l := range standIns(t, d, manyTensors(format, false, 1, 2), anywhere) {
				nodes, launches = append(nodes, &graph.Node{}), append(launches, l.dispatch)
			}
			for _, l := range standIns(t, d, normChain(graph.OpRMSNorm, graph.OpLayerNorm, format, true, 5, 8), anywhere) {
				nodes, launches = append(nodes, &graph.Node{}), append(launches, l.dispatch)
			}
		}
	}
	seen := map[string]bool{}
	for i, dis := range launches {
		k, ok := shaders.Lookup(dis.kernel)
		require.True(t, ok)
		seen[k.Name] = true
		requireSameBlock(t, k, dis.push)
		require.LessOrEqual(t, len(dis.spec), len(k.Spec), "%s: specialization constants", k.Name)
		for id, s := range k.Spec {
			if id >= len(dis.spec) {
				require.NotEqual(t, "bool", s.Type, "%s: %s is left at its default", k.Name, s.Name)
			} else if s.Type == "bool" {
				require.LessOrEqual(t, dis.spec[id], uint32(1), "%s: %s", k.Name, s.Name)
			}
		}
		for j, v := range dis.bind {
			switch {
			case v == nil:
			case contains(nodes[i].Out, v):
				// delta is written by the first kernel of its node and read by the others; a product in parts adds to what it has written.
				added := false
				for other, w := range dis.bind {
					added = added || w != nil && base(w) == base(v) && strings.Contains(k.Access[other], "w")
				}
				require.True(t, strings.Contains(k.Access[j], "w") || strings.HasPrefix(v.Name(), "delta") || contains(nodes[i].In, v) || added,
					"%s never writes %s of %s", k.Name, v.Name(), nodes[i])
			case contains(nodes[i].In, v):
				require.Equal(t, "r", k.Access[j], "%s may write the input %s", k.Name, v.Name())
			}
		}
	}
	for _, k := range shaders.All() {
		require.True(t, seen[k.Name], "no lowering uses kernel %s", k.Name)
	}
}

// contains tells a value, or a part of one, of a list.
func contains(list []*graph.Value, v *graph.Value) bool {
	return isOperand(&graph.Node{Out: list}, base(v))
}

func base(v *graph.Value) *graph.Value {
	b, _ := v.Base()
	return b
}

func requireSameBlock(t *testing.T, k shaders.Kernel, push any) {
	t.Helper()
	if push == nil {
		require.Empty(t, k.Push, "%s wants push constants", k.Name)
		return
	}
	glslTypes := map[reflect.Kind]string{reflect.Uint32: "uint", reflect.Float32: "float", reflect.Int32: "int"}
	plain := func(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }
	typ := reflect.TypeOf(push)
	require.Equal(t, len(k.Push), typ.NumField(), "%s: members of %s", k.Name, typ.Name())
	require.Equal(t, k.PushBytes, int(typ.Size()), "%s: size of %s", k.Name, typ.Name())
	for i, want := range k.Push {
		f := typ.Field(i)
		require.Equal(t, plain(want.Name), plain(f.Name), "%s: member %d of %s", k.Name, i, typ.Name())
		require.Equal(t, want.Offset, int(f.Offset), "%s: %s.%s", k.Name, typ.Name(), f.Name)
		require.Equal(t, want.Size, int(f.Type.Size()), "%s: %s.%s", k.Name, typ.Name(), f.Name)
		if f.Type.Kind() == reflect.Array {
			require.Equal(t, reflect.Uint32, f.Type.Elem().Kind())
			require.Contains(t, want.Type, "uvec", "%s: %s.%s", k.Name, typ.Name(), f.Name)
			continue
		}
		require.Equal(t, want.Type, glslTypes[f.Type.Kind()], "%s: %s.%s", k.Name, typ.Name(), f.Name)
	}
}

func TestGridCoversEveryGroup(t *testing.T) {
	d := floorCaps(backend.Discrete)
	for _, count := range []int{1, 2, 65535, 65536, 131071, 1 << 24, 1<<31 - 1} {
		g := d.grid(count)
		require.GreaterOrEqual(t, int(g[0])*int(g[1]), count)
		require.Less(t, int(g[0])*int(g[1])-count, int(g[1]), "at most a part of a row is idle")
		for i := range g {
			require.LessOrEqual(t, g[i], d.maxGroups[i])
		}
	}
}

func TestLanes(t *testing.T) {
	require.Equal(t, []int{128, 256}, []int{floorCaps(backend.Discrete).threads(), roomyCaps(backend.Discrete).threads()})
	for _, d := range []*deviceCaps{floorCaps(backend.Discrete), roomyCaps(backend.Discrete)} {
		for n := 1; n < 5000; n++ {
			for _, each := range []int{4, normGradKept, n} {
				lanes := d.lanesFor(n, each)
				require.Zero(t, d.threads()%lanes)
				require.LessOrEqual(t, lanes, d.threads())
				require.True(t, n <= each*lanes || lanes == d.threads())
				require.Zero(t, graph.SumSquaresParts%(d.threads()/lanes), "sum_squares has whole workgroups of chunks")
			}
			if n <= maxHeadDim {
				require.LessOrEqual(t, n/2, 2*d.lanesFor(n, 4), "a lane of the RoPE kernels has two pairs")
			}
		}
	}
}

func TestFixedPoint(t *testing.T) {
	require.Equal(t, [2]uint32{0x80000000, 0}, q64(0.5))
	require.Equal(t, [2]uint32{math.MaxUint32, math.MaxUint32}, q64(1), "1 is not a fraction: the largest one stands for it")
	for _, x := range []float64{0.75, 1e-4, 1.0 / 3, math.Nextafter(1, 0)} {
		q := q64(x)
		got := new(big.Float).SetPrec(200).SetInt(new(big.Int).SetUint64(uint64(q[0])<<32 | uint64(q[1])))
		got.SetMantExp(got, -64)
		off, _ := got.Sub(got, big.NewFloat(x)).Float64()
		require.LessOrEqual(t, math.Abs(off), 0x1p-64, "%g", x)
	}
}

func TestSoftwareLoopsAreBounded(t *testing.T) {
	b := graph.NewBuilder()
	q := b.Input("q", graph.F32, 1, 1<<15, 64)
	o, _ := b.Attention(q, q, q, nil, graph.AttentionAttr{Heads: 1, KVHeads: 1, HeadDim: 64, Scale: 1})
	b.Output("o", o)
	b.Output("sum", b.Sum(b.Input("x", graph.F32, 1<<25), nil))
	for _, n := range b.Build("long").Nodes() {
		_, err := lowerNode(floorCaps(backend.Discrete), n)
		require.NoError(t, err)
		_, err = lowerNode(floorCaps(backend.Software), n)
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.ErrorContains(t, err, "loop")
	}
}

func TestUnsupportedShapes(t *testing.T) {
	d := floorCaps(backend.Discrete)
	build := func(record func(b *graph.Builder) *graph.Value) *graph.Node {
		b := graph.NewBuilder()
		b.Output("y", record(b))
		nodes := b.Build("p").Nodes()
		return nodes[len(nodes)-1]
	}
	for want, n := range map[string]*graph.Node{
		"heads of 258 elements": build(func(b *graph.Builder) *graph.Value {
			q := b.Input("q", graph.F32, 1, 3, 258)
			o, _ := b.Attention(q, q, q, nil, graph.AttentionAttr{Heads: 1, KVHeads: 1, HeadDim: 258, Scale: 1})
			return o
		}),
		"kernel takes at most 256": build(func(b *graph.Builder) *graph.Value {
			return b.QKNormRoPE(b.Input("q", graph.F32, 1, 3, 258), nil, graph.QKNormRoPEAttr{Heads: 1, HeadDim: 258, Theta: 1e4})
		}),
		"RoPE base of 0.5": build(func(b *graph.Builder) *graph.Value {
			return b.QKNormRoPE(b.Input("q", graph.F32, 1, 3, 8), nil, graph.QKNormRoPEAttr{Heads: 1, HeadDim: 8, Theta: 0.5})
		}),
		"index at most": build(func(b *graph.Builder) *graph.Value { return b.ReLU(b.Input("x", graph.F32, 1<<16, 1<<15)) }),
	} {
		_, err := lowerNode(d, n)
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.ErrorContains(t, err, want)
	}
}
