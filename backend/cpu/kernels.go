package cpu

import (
	"github.com/vktrain/vktrain/backend/cpu/gemm"
	"github.com/vktrain/vktrain/graph"
)

// kernel is what a node runs: tasks, which workers run in any order and beside those of other nodes, or one function, which spreads its work over
// the pool itself.
type kernel struct {
	tasks int
	task  func(worker, i int)
	whole func()
}

func parallel(tasks int, f func(worker, i int)) kernel { return kernel{tasks: tasks, task: f} }

func serial(f func()) kernel { return parallel(1, func(_, _ int) { f() }) }

// kernels is indexed by operator: each compiles a node to what runs it.
var kernels = [graph.NumOps]func(c *compiler, n *graph.Node) kernel{
	graph.OpEmbedding:        embedding,
	graph.OpEmbeddingGrad:    embeddingGrad,
	graph.OpMatMul:           matMul,
	graph.OpRMSNorm:          norm,
	graph.OpRMSNormGrad:      normGrad,
	graph.OpLayerNorm:        norm,
	graph.OpLayerNormGrad:    normGrad,
	graph.OpQKNormRoPE:       qkNormRoPE,
	graph.OpQKNormRoPEGrad:   qkNormRoPEGrad,
	graph.OpAttention:        attention,
	graph.OpAttentionGrad:    attentionGrad,
	graph.OpSoftmax:          softmax,
	graph.OpSoftmaxGrad:      softmaxGrad,
	graph.OpSwiGLU:           swiGLU,
	graph.OpSwiGLUGrad:       swiGLUGrad,
	graph.OpGELU:             gelu,
	graph.OpGELUGrad:         geluGrad,
	graph.OpReLU:             relu,
	graph.OpReLUGrad:         reluGrad,
	graph.OpSoftCap:          softCap,
	graph.OpSoftCapGrad:      softCapGrad,
	graph.OpCrossEntropy:     crossEntropy,
	graph.OpCrossEntropyGrad: crossEntropyGrad,
	graph.OpAdd:              add,
	graph.OpSum:              sum,
	graph.OpBroadcast:        broadcast,
	graph.OpSumRows:          sumRows,
	graph.OpFill:             fill,
	graph.OpSumSquares:       sumSquares,
	graph.OpClipNorm:         clipNorm,
	graph.OpAdamW:            adamW,
	graph.OpCast:             cast,
	graph.OpRowMoments:       rowMoments,
	graph.OpSummary:          summary,
	graph.OpTopMagnitudes:    topMagnitudes,
	graph.OpDots:             dots,
	graph.OpAdamWStats:       adamWStats,
	graph.OpRowAngle:         rowAngle,
	graph.OpRowNorms:         rowNorms,
}

// scratch is the workers' memory, shared by the nodes of a program, which run one after the other.
type scratch struct {
	gemm    *gemm.Scratch
	workers []workerScratch
}

type workerScratch struct {
	mul       *gemm.Single
	f32       [2][]float32
	attention []float32
}

func newScratch(workers int) *scratch {
	s := &scratch{gemm: gemm.NewScratch(workers), workers: make([]workerScratch, workers)}
	for i := range s.workers {
		s.workers[i].mul = gemm.NewSingle()
	}
	return s
}

// grow makes sure that each worker has n floats in each of its two buffers.
func (s *scratch) grow(n int) {
	for i := range s.workers {
		w := &s.workers[i]
		for j := range w.f32 {
			if len(w.f32[j]) < n {
				w.f32[j] = make([]float32, n)
			}
		}
	}
}

// growAttention makes sure that each worker has n floats for attention.
func (s *scratch) growAttention(n int) {
	for i := range s.workers {
		if w := &s.workers[i]; len(w.attention) < n {
			w.attention = make([]float32, n)
		}
	}
}

// taskElems is about how many elements a task goes over: enough to pay for handing it out.
const taskElems = 8192

// overRows runs f on blocks of the rows of a matrix, in parallel.
func (c *compiler) overRows(rows, cols int, f func(w *workerScratch, from, to int)) kernel {
	block := max(1, taskElems/cols)
	tasks := (rows + block - 1) / block
	body := func(worker, i int) {
		f(&c.scratch.workers[worker], i*block, min(rows, (i+1)*block))
	}
	return parallel(tasks, body)
}

// overElems runs f on blocks of n elements, in parallel.
func (c *compiler) overElems(n int, f func(from, to int)) kernel {
	return c.overRows(n, 1, func(_ *workerScratch, from, to int) { f(from, to) })
}

// matMul: c = addend + op(a) op(b). See graph.Builder.MatMul.
func matMul(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	at := graph.AttrOf[graph.MatMulAttr](n)
	batch, m, cols, k := graph.MatMulDims(n)
	view := func(data []float32, rows, cols int, trans bool) gemm.Matrix {
		if trans {
			return gemm.Matrix{Data: data, Row: 1, Col: rows}
		}
		return gemm.Matrix{Data: data, Row: cols, Col: 1}
	}
	if batch == 1 {
		mul := gemm.New(m, cols, k, view(in[0], m, k, at.TransA), view(in[1], k, cols, at.TransB), out[0], cols, in[2], c.scratch.gemm)
		return kernel{whole: func() { mul.Run(c.pool) }}
	}
	return parallel(batch, func(worker, i int) {
		y := out[0][i*m*cols : (i+1)*m*cols]
		if in[2] != nil {
			copy(y, in[2][i*m*cols:])
		}
		c.scratch.workers[worker].mul.Mul(m, cols, k, view(in[0][i*m*k:(i+1)*m*k], m, k, at.TransA),
			view(in[1][i*k*cols:(i+1)*k*cols], k, cols, at.TransB), y, cols, in[2] != nil)
	})
}
