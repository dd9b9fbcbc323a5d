//go:build !amd64

package simd

func gemm6x16(k int, a, b, c *float32, ldc int, accumulate bool) {
	gemm6x16Go(k, a, b, c, ldc, accumulate)
}

var active = plain
