package simd

import (
	"math"
	"unsafe"
)

// Number is an element as it is stored: a float32, or the bits of a bfloat16.
type Number interface{ float32 | uint16 }

// BF16 is the number with these bits.
func BF16(x uint16) float32 { return math.Float32frombits(uint32(x) << 16) }

// Transpose packs 8 rows that are contiguous along k, as float32:
//
//	dst[l*width+i] = src[i*ld+l], i < 8, l < k
//
// Of src there are 1 <= rows <= 8; a missing row repeats the last. If width < 8, a step's surplus is overwritten by the next
// step's elements, and dst is (k-1)*width+8 long all the same.
func Transpose[T Number](dst []float32, width int, src []T, ld, rows, k int) {
	if uint(rows-1) >= 8 || k < 1 {
		panic("simd: bad transpose")
	}
	_, _ = dst[(k-1)*width+7], src[(rows-1)*ld+k-1]
	from := 0
	if packs && k >= 8 {
		from = k &^ 7
		if s := unsafe.Pointer(&src[0]); isBF16[T]() {
			transposeBF16(&dst[0], width, (*uint16)(s), ld, rows, from)
		} else {
			transposeF32(&dst[0], width, (*float32)(s), ld, rows, from)
		}
	}
	transposeGo(dst, width, src, ld, rows, from, k)
}

// transposeGo is the plain twin, for steps from..k-1.
func transposeGo[T Number](dst []float32, width int, src []T, ld, rows, from, k int) {
	for l := from; l < k; l++ {
		d := dst[l*width : l*width+8]
		for i := range d {
			d[i] = widen(src[min(i, rows-1)*ld+l])
		}
	}
}

// Strided packs steps of cols elements, 8 or 16, as float32:
//
//	dst[l*width+i] = src[l*ld+i], i < cols, l < k
//
// If width < cols, a step's surplus is overwritten by the next step's elements.
func Strided[T Number](dst []float32, width int, src []T, ld, cols, k int) {
	if cols != 8 && cols != 16 || k < 1 {
		panic("simd: bad copy")
	}
	_, _ = dst[(k-1)*width+cols-1], src[(k-1)*ld+cols-1]
	if !packs {
		stridedGo(dst, width, src, ld, cols, k)
		return
	}
	if s := unsafe.Pointer(&src[0]); isBF16[T]() {
		stridedBF16(&dst[0], width, (*uint16)(s), ld, cols, k)
	} else {
		stridedF32(&dst[0], width, (*float32)(s), ld, cols, k)
	}
}

// stridedGo is the plain twin.
func stridedGo[T Number](dst []float32, width int, src []T, ld, cols, k int) {
	for l := range k {
		d := dst[l*width : l*width+cols]
		for i, x := range src[l*ld : l*ld+cols] {
			d[i] = widen(x)
		}
	}
}

func isBF16[T Number]() bool { return unsafe.Sizeof(T(0)) == 2 }

func widen[T Number](x T) float32 {
	if isBF16[T]() {
		return BF16(uint16(x))
	}
	return float32(x)
}
