package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/internal/bootstrap"
)

// Op is an operator with shapes, or all of one operator's nodes, in a training step.
type Op struct {
	Name   string  `json:"op"`
	Shapes string  `json:"shapes,omitempty"`
	Kernel string  `json:"kernel,omitempty"` // what runs it, where the device tells and shapes are told apart
	Count  int     `json:"count"`            // nodes in the step
	Ms     float64 `json:"ms"`               // of all of them: the median over the repeats
	MsMin  float64 `json:"ms_min"`
	Share  float64 `json:"share"`    // of the time of all nodes
	GFLOPs float64 `json:"gflops"`   // per second, by graph.Cost
	GBs    float64 `json:"gb_per_s"` // the same; over the memory's rate where a cache holds the operands

	flops, bytes int64
}

// OpPeak is an Op beside the peak.
type OpPeak struct {
	Op
	MsEach float64 `json:"ms_each"` // of one node: the median over the repeats
	Bound  string  `json:"bound"`   // BoundFMA or BoundMemory: which of the two would take longer at its peak; empty if the peak is unknown
	OfPeak float64 `json:"of_peak"` // that time over the measured one
}

// What bounds an operator.
const (
	BoundFMA    = "fma"
	BoundMemory = "memory"
)

var errNoProfile = errors.New("the device can't time the nodes of a program")

// profile times every node repeats times and groups them by a key; the groups are in the order of their first nodes. A group's time is the median
// over the repeats of its nodes' sum.
func profile(ctx context.Context, t *trainee, repeats int, key func(n *graph.Node) (op, shapes string)) ([]Op, error) {
	var ops []Op
	var times [][]float64 // of each group, by repeat
	for p, e := range t.steps.Executables() {
		prof, ok := e.(backend.Profiler)
		if !ok {
			return nil, errNoProfile
		}
		nodes, kernels := t.programs[p].Nodes(), kernelsOf(e)
		group := make([]int, len(nodes))
		index := map[[2]string]int{}
		for i, n := range nodes {
			op, shapes := key(n)
			g, ok := index[[2]string{op, shapes}]
			if !ok {
				g = len(ops)
				index[[2]string{op, shapes}] = g
				ops, times = append(ops, Op{Name: op, Shapes: shapes}), append(times, make([]float64, repeats))
			}
			if kernels != nil && shapes != "" {
				ops[g].addKernel(kernels[i])
			}
			flops, bytes := graph.Cost(n)
			ops[g].Count++
			ops[g].flops += flops
			ops[g].bytes += bytes
			group[i] = g
		}
		for r := range repeats {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			seconds, err := prof.Profile()
			if err != nil {
				return nil, err
			}
			for i, s := range seconds {
				times[group[i]][r] += s
			}
		}
	}
	total := 0.0
	for i := range ops {
		s := bootstrap.Median(times[i])
		total += s
		ops[i].Ms, ops[i].MsMin = 1e3*s, 1e3*slices.Min(times[i])
		ops[i].GFLOPs, ops[i].GBs = ratio(float64(ops[i].flops)/1e9, s), ratio(float64(ops[i].bytes)/1e9, s)
	}
	for i := range ops {
		ops[i].Share = ratio(ops[i].Ms/1e3, total)
	}
	slices.SortStableFunc(ops, func(a, b Op) int { return cmp.Compare(b.Ms, a.Ms) })
	return ops, nil
}

// addKernel notes what runs a node of the group.
func (o *Op) addKernel(name string) {
	switch {
	case o.Kernel == "":
		o.Kernel = name
	case !slices.Contains(strings.Split(o.Kernel, "; "), name):
		o.Kernel += "; " + name
	}
}

// kernelsOf names what computes each node, nil where the device does not tell.
func kernelsOf(e backend.Executable) []string {
	if k, ok := e.(backend.Kernels); ok {
		return k.Kernels()
	}
	return nil
}

// ratio is 0 where a clock was too coarse to see anything: JSON has no infinity.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// byOp is a key of profile.
func byOp(n *graph.Node) (op, shapes string) { return n.Op.String(), "" }

// byShapes tells apart what may differ in speed.
func byShapes(n *graph.Node) (op, shapes string) {
	var b strings.Builder
	switch n.Op {
	case graph.OpMatMul:
		batch, rows, cols, inner := graph.MatMulDims(n)
		side := map[bool]byte{false: 'N', true: 'T'}
		attr := graph.AttrOf[graph.MatMulAttr](n)
		fmt.Fprintf(&b, "%c%c ", side[attr.TransA], side[attr.TransB])
		if batch > 1 {
			fmt.Fprintf(&b, "%d of ", batch)
		}
		fmt.Fprintf(&b, "%dx%dx%d", rows, cols, inner)
	case graph.OpAttention, graph.OpAttentionGrad:
		attr := graph.AttrOf[graph.AttentionAttr](n)
		shape := n.Out[0].Shape()
		fmt.Fprintf(&b, "%dx%d, %d:%d heads of %d", shape[0], shape[1], attr.Heads, attr.KVHeads, attr.HeadDim)
	case graph.OpEmbedding:
		fmt.Fprintf(&b, "%s of %s", times(n.Out[0].Shape()), times(n.In[0].Shape()))
	case graph.OpEmbeddingGrad:
		fmt.Fprintf(&b, "%s of %s", times(n.In[1].Shape()), times(n.Out[0].Shape()))
	case graph.OpSumSquares:
		b.WriteString(times(n.In[0].Shape()))
	case graph.OpQKNormRoPE, graph.OpQKNormRoPEGrad:
		attr := graph.AttrOf[graph.QKNormRoPEAttr](n)
		fmt.Fprintf(&b, "%s of %s, %s", times(n.Out[0].Shape()), times(graph.Shape{attr.Heads, attr.HeadDim}), attr.Norm)
	default:
		widest := n.Out[0]
		if len(n.In) > 0 && n.In[0] != nil && n.In[0].Elems() > widest.Elems() {
			widest = n.In[0]
		}
		b.WriteString(times(widest.Shape()))
	}
	in, _ := n.Op.Operands()
	for i, name := range in {
		if n.In[i] != nil && strings.HasPrefix(name, "[") {
			b.WriteString(" +" + strings.Trim(name, "[]"))
		}
	}
	return n.Op.String(), b.String()
}

// times prints a shape as 8x256x384.
func times(s graph.Shape) string {
	words := make([]string, len(s))
	for i, d := range s {
		words[i] = fmt.Sprint(d)
	}
	return strings.Join(words, "x")
}

// OpOptions say which step's operators are measured.
type OpOptions struct {
	Batch, SeqLen int
	Repeats       int      // of the whole step, so that operators take turns
	Ops           []string // only these; empty: all
}

// OpReport is what Ops found.
type OpReport struct {
	Name   string `json:"name"`
	Device string `json:"device"`
	Batch  int    `json:"batch"`
	SeqLen int    `json:"seq_len"`

	Precision string `json:"precision"` // of activations
	Masters   string `json:"masters"`   // the format of the matrices that AdamW updates

	Peak   *Peak    `json:"peak,omitempty"` // nil if the device's can't be measured
	StepMs float64  `json:"step_ms"`        // the sum over all nodes
	Ops    []OpPeak `json:"ops"`            // those that take the longest together first
}

// Ops times each operator of a training step with each of its shapes.
func Ops(ctx context.Context, dev backend.Backend, m Model, o OpOptions) (report OpReport, err error) {
	if o.Repeats < 1 {
		return report, fmt.Errorf("%d repeats are too few: use at least 1", o.Repeats)
	}
	step := StepOptions{Batch: o.Batch, SeqLen: o.SeqLen}
	if err := fits(dev, []Model{m}, step); err != nil {
		return report, err
	}
	t, err := newTrainee(ctx, dev, m, step)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if _, err := t.step(); err != nil {
		return report, err
	}
	report = OpReport{Name: m.Name, Device: dev.Info().String(), Batch: o.Batch, SeqLen: o.SeqLen, Precision: t.result.Precision, Masters: t.result.Masters}
	switch p, err := MeasurePeak(dev); {
	case err == nil:
		report.Peak = &p
	case !errors.Is(err, ErrNoPeak):
		return report, err
	}
	all, err := profile(ctx, t, o.Repeats, byShapes)
	if err != nil {
		return report, err
	}
	if p := report.Peak; p != nil { // once more, for a machine that others use too
		again, err := MeasurePeak(dev)
		if err != nil {
			return report, err
		}
		p.GFLOPs, p.GBs = max(p.GFLOPs, again.GFLOPs), max(p.GBs, again.GBs)
	}
	for _, op := range all {
		report.StepMs += op.Ms
		if len(o.Ops) == 0 || slices.Contains(o.Ops, op.Name) {
			report.Ops = append(report.Ops, op.beside(report.Peak))
		}
	}
	return report, nil
}

func (op Op) beside(p *Peak) OpPeak {
	r := OpPeak{Op: op, MsEach: op.Ms / float64(op.Count)}
	if p == nil {
		return r
	}
	compute, memory := float64(op.flops)/p.GFLOPs/1e6, float64(op.bytes)/p.GBs/1e6 // ms
	if r.Bound = BoundMemory; compute > memory {
		r.Bound = BoundFMA
	}
	r.OfPeak = ratio(max(compute, memory), op.Ms)
	return r
}
