//go:build !amd64

package simd

var active = plain
