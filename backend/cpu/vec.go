package cpu

// total has four sums in float64.
func total(x []float32) float64 {
	var a, b, c, d float64
	i := 0
	for ; i+4 <= len(x); i += 4 {
		u := x[i : i+4 : i+4]
		a += float64(u[0])
		b += float64(u[1])
		c += float64(u[2])
		d += float64(u[3])
	}
	for ; i < len(x); i++ {
		a += float64(x[i])
	}
	return (a + b) + (c + d)
}
