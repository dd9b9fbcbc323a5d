package reference

import (
	"math"
	"slices"

	"github.com/vktrain/vktrain/graph"
)

type attentionParams struct {
	graph.AttentionAttr
	scale, softCap float64
}

func attentionParamsOf(n *graph.Node, scale []float64) attentionParams {
	at := graph.AttrOf[graph.AttentionAttr](n)
	p := attentionParams{at, at.Scale, float64(at.SoftCap)}
	if scale != nil {
		p.scale = scale[0]
	}
	return p
}

// head gives head j of position t of batch b in x (B, T, heads*h).
func head(x []float64, b, t, T, j, heads, h int) []float64 {
	at := ((b*T+t)*heads + j) * h
	return x[at : at+h]
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

// logit gives s after the soft-cap, and ds/d(scale q·k).
func (p attentionParams) logit(qk float64) (s, slope float64) {
	s = p.scale * qk
	if p.softCap == 0 {
		return s, 1
	}
	th := math.Tanh(s / p.softCap)
	return p.softCap * th, 1 - th*th
}

// logSumExp subtracts the largest first, so that it cannot overflow. A NaN among x gives NaN.
func logSumExp(x []float64) float64 {
	top := math.Inf(-1)
	for _, v := range x {
		top = math.Max(top, v)
	}
	s := 0.0
	for _, v := range x {
		s += math.Exp(v - top)
	}
	return top + math.Log(s)
}

// entropyOf gives the entropy in nats of the softmax of s, whose log-sum-exp is lse. A weight of 0 adds nothing.
func entropyOf(s []float64, lse float64) float64 {
	h := 0.0
	for _, v := range s {
		if p := math.Exp(v - lse); p != 0 {
			h -= p * (v - lse)
		}
	}
	return h
}

func attention(n *graph.Node, in, out [][]float64) {
	q, k, v, o, lse, top, entropy := in[0], in[1], in[2], out[0], out[1], out[2], out[3]
	p := attentionParamsOf(n, in[3])
	B, T, H, K, h := n.In[0].Shape()[0], n.In[0].Shape()[1], p.Heads, p.KVHeads, p.HeadDim
	for b := range B {
		for j := range H {
			for t := range T {
				s := make([]float64, t+1)
				for u := range s {
					s[u], _ = p.logit(dot(head(q, b, t, T, j, H, h), head(k, b, u, T, j*K/H, K, h)))
				}
				l := logSumExp(s)
				lse[(b*H+j)*T+t] = l
				if top != nil {
					top[(b*H+j)*T+t] = slices.Max(s)
				}
				if entropy != nil {
					entropy[(b*H+j)*T+t] = entropyOf(s, l)
				}
				ot := head(o, b, t, T, j, H, h)
				clear(ot)
				for u := range s {
					for i, vi := range head(v, b, u, T, j*K/H, K, h) {
						ot[i] += math.Exp(s[u]-l) * vi
					}
				}
			}
		}
	}
}

func attentionGrad(n *graph.Node, in, out [][]float64) {
	do, q, k, v, o, lse := in[0], in[1], in[2], in[3], in[4], in[5]
	dq, dk, dv, delta, dscale := out[0], out[1], out[2], out[3], out[4]
	p := attentionParamsOf(n, in[6])
	B, T, H, K, h := n.In[1].Shape()[0], n.In[1].Shape()[1], p.Heads, p.KVHeads, p.HeadDim
	clear(dq)
	clear(dk)
	clear(dv)
	clear(dscale)
	for b := range B {
		for j := range H {
			for t := range T {
				qt, dout := head(q, b, t, T, j, H, h), head(do, b, t, T, j, H, h)
				row := (b*H+j)*T + t
				delta[row] = dot(dout, head(o, b, t, T, j, H, h))
				for u := range t + 1 {
					ku, vu := head(k, b, u, T, j*K/H, K, h), head(v, b, u, T, j*K/H, K, h)
					qk := dot(qt, ku)
					s, slope := p.logit(qk)
					prob := math.Exp(s - lse[row])
					ds := prob * (dot(dout, vu) - delta[row]) * slope
					dqt, dku, dvu := head(dq, b, t, T, j, H, h), head(dk, b, u, T, j*K/H, K, h), head(dv, b, u, T, j*K/H, K, h)
					for i := range h {
						dqt[i] += p.scale * ds * ku[i]
						dku[i] += p.scale * ds * qt[i]
						dvu[i] += prob * dout[i]
					}
					if dscale != nil {
						dscale[row] += ds * qk
					}
				}
			}
		}
	}
}
