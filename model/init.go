package model

import (
	"sync"

	"github.com/vktrain/vktrain/rng"
)

// InitParam draws a parameter's initial values, row-major. They depend on the seed and on the parameter's name, shape, Mean and Std alone:
// configs that differ elsewhere, in their placement for one, share the values of the parameters that they share.
func (c Config) InitParam(seed uint64, p Param) []float32 {
	x := make([]float32, p.Shape.Elems())
	p.Init(seed, 0, x)
	return x
}

// initPart is how many values a goroutine draws, a multiple of 4: about a millisecond's.
const initPart = 1 << 16

// Init gives the part of InitParam's values that begins at an element, a multiple of 4.
func (p Param) Init(seed uint64, from int, x []float32) {
	if from%4 != 0 {
		panic("model: initial values from an element that is no multiple of 4")
	}
	var parts sync.WaitGroup
	for ; len(x) > initPart; from, x = from+initPart, x[initPart:] {
		at, part := from, x[:initPart]
		parts.Go(func() { p.initPart(seed, at, part) })
	}
	p.initPart(seed, from, x)
	parts.Wait()
}

func (p Param) initPart(seed uint64, from int, x []float32) {
	clear(x)
	if p.Std != 0 {
		r := rng.New(seed, "init", p.Name)
		r.Seek(uint64(from))
		r.Normals(x)
	}
	for i, z := range x {
		// The conversion keeps machines with a fused multiply-add from using it here.
		x[i] = float32(p.Mean + float64(p.Std*float64(z)))
	}
}
