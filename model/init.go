package model

import "github.com/vktrain/vktrain/rng"

// InitParam draws a parameter's initial values, row-major. They depend on the seed and on the parameter's name, shape, Mean and Std alone:
// configs that differ elsewhere, in their placement for one, share the values of the parameters that they share.
func (c Config) InitParam(seed uint64, p Param) []float32 {
	x := make([]float32, p.Shape.Elems())
	if p.Std != 0 {
		rng.New(seed, "init", p.Name).Normals(x)
	}
	for i, z := range x {
		// The conversion keeps machines with a fused multiply-add from using it here.
		x[i] = float32(p.Mean + float64(p.Std*float64(z)))
	}
	return x
}
