package conformance

import (
	"fmt"

	"github.com/vktrain/vktrain/graph"
)

// opTests is indexed by Op.
var opTests = [graph.NumOps]opTest{
	graph.OpEmbedding:        {embeddingCases, embeddingBound},
	graph.OpEmbeddingGrad:    {embeddingGradCases, embeddingGradBound},
	graph.OpMatMul:           {matMulCases, matMulBound},
	graph.OpRMSNorm:          {rmsNormCases, rmsNormBound},
	graph.OpRMSNormGrad:      {rmsNormGradCases, rmsNormGradBound},
	graph.OpLayerNorm:        {layerNormCases, layerNormBound},
	graph.OpLayerNormGrad:    {layerNormGradCases, layerNormGradBound},
	graph.OpQKNormRoPE:       {qkNormRoPECases, qkNormRoPEBound},
	graph.OpQKNormRoPEGrad:   {qkNormRoPEGradCases, qkNormRoPEGradBound},
	graph.OpAttention:        {attentionCases, attentionBound},
	graph.OpAttentionGrad:    {attentionGradCases, attentionGradBound},
	graph.OpSoftmax:          {softmaxCases, softmaxBound},
	graph.OpSoftmaxGrad:      {softmaxGradCases, softmaxGradBound},
	graph.OpSwiGLU:           {swiGLUCases, swiGLUBound},
	graph.OpSwiGLUGrad:       {swiGLUGradCases, swiGLUGradBound},
	graph.OpGELU:             {geluCases, geluBound},
	graph.OpGELUGrad:         {geluGradCases, geluGradBound},
	graph.OpReLU:             {reluCases, reluBound},
	graph.OpReLUGrad:         {reluGradCases, reluGradBound},
	graph.OpSoftCap:          {softCapCases, softCapBound},
	graph.OpSoftCapGrad:      {softCapGradCases, softCapGradBound},
	graph.OpCrossEntropy:     {crossEntropyCases, crossEntropyBound},
	graph.OpCrossEntropyGrad: {crossEntropyGradCases, crossEntropyGradBound},
	graph.OpAdd:              {addCases, addBound},
	graph.OpSum:              {sumCases, sumBound},
	graph.OpBroadcast:        {broadcastCases, broadcastBound},
	graph.OpSumRows:          {sumRowsCases, sumRowsBound},
	graph.OpFill:             {fillCases, fillBound},
	graph.OpSumSquares:       {sumSquaresCases, sumSquaresBound},
	graph.OpClipNorm:         {clipNormCases, clipNormBound},
	graph.OpAdamW:            {adamWCases, adamWBound},
	graph.OpCast:             {castCases, castBound},
	graph.OpRowMoments:       {rowMomentsCases, rowMomentsBound},
	graph.OpSummary:          {summaryCases, summaryBound},
	graph.OpTopMagnitudes:    {topMagnitudesCases, topMagnitudesBound},
	graph.OpDots:             {dotsCases, dotsBound},
	graph.OpAdamWStats:       {adamWStatsCases, adamWStatsBound},
	graph.OpRowAngle:         {rowAngleCases, rowAngleBound},
	graph.OpRowNorms:         {rowNormsCases, rowNormsBound},
}

// addendMode says where an optional addend is.
type addendMode uint8

const (
	noAddend addendMode = iota
	separate
	inPlace
)

func (m addendMode) String() string { return [...]string{"", " + addend", " += "}[m] }

// addend fills in the operand's place in the case.
func (c *opCase) addend(m addendMode, operand int) {
	if m == noAddend {
		return
	}
	c.in[operand] = f32(c.out[0].shape...)
	if m == inPlace {
		c.inPlace = map[int]int{0: operand}
	}
}

// plus adds an addend, if there is one.
func plus(addend []num, i int, x num) num {
	if addend == nil {
		return x
	}
	return x.add(addend[i])
}

func dims(sizes ...int) string {
	s := ""
	for i, d := range sizes {
		if i > 0 {
			s += "x"
		}
		s += fmt.Sprint(d)
	}
	return s
}
