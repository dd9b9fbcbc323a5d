#include "textflag.h"

// Operands of VFMLA, VTRN and VZIP are in Go's order: the second source first, the destination last.

// The tile: up to 6 rows of 4 vectors in V0-V23. V24-V27 hold a step of b, V28 and V29 an element of a in every lane.

#define ZERO(v) VEOR v.B16, v.B16, v.B16

#define ZERO4(v, w, x, y) ZERO(v); ZERO(w); ZERO(x); ZERO(y)

// ROW adds an element of a, at p, times the step of b to a row of the tile.
#define ROW(p, a, v, w, x, y) \
	VLD1R.P (p)(R7), [a.S4]        \
	VFMLA   a.S4, V24.S4, v.S4     \
	VFMLA   a.S4, V25.S4, w.S4     \
	VFMLA   a.S4, V26.S4, x.S4     \
	VFMLA   a.S4, V27.S4, y.S4

#define ROW1 ROW(R1, V28, V0, V1, V2, V3)
#define ROW2 ROW(R2, V29, V4, V5, V6, V7)
#define ROW3 ROW(R3, V28, V8, V9, V10, V11)
#define ROW4 ROW(R4, V29, V12, V13, V14, V15)
#define ROW5 ROW(R5, V28, V16, V17, V18, V19)
#define ROW6 ROW(R6, V29, V20, V21, V22, V23)

#define STEP VLD1.P (R8)(R9), [V24.S4, V25.S4, V26.S4, V27.S4]

// OLD adds a row of c: times V30, which is one.
#define OLD(v, w, x, y) \
	VLD1.P (R13)(R11), [V24.S4, V25.S4, V26.S4, V27.S4] \
	VFMLA  V30.S4, V24.S4, v.S4                         \
	VFMLA  V30.S4, V25.S4, w.S4                         \
	VFMLA  V30.S4, V26.S4, x.S4                         \
	VFMLA  V30.S4, V27.S4, y.S4

// WRITE stores a row, and goes on while there are rows.
#define WRITE(v, w, x, y) \
	VST1.P [v.S4, w.S4, x.S4, y.S4], (R10)(R11) \
	SUBS   $1, R12, R12                         \
	BEQ    done

// func tileNEON(rows, k int, a *float32, row, step int, b *float32, ldb int, c *float32, ldc int, accumulate bool)
TEXT ·tileNEON(SB), NOSPLIT, $0-73
	MOVD  rows+0(FP), R12
	MOVD  k+8(FP), R0
	MOVD  a+16(FP), R1
	MOVD  row+24(FP), R14
	MOVD  step+32(FP), R7
	MOVD  b+40(FP), R8
	MOVD  ldb+48(FP), R9
	MOVD  c+56(FP), R10
	MOVD  ldc+64(FP), R11
	MOVBU accumulate+72(FP), R15
	LSL   $2, R14
	LSL   $2, R7
	LSL   $2, R9
	LSL   $2, R11
	ADD   R14, R1, R2
	ADD   R14, R2, R3
	ADD   R14, R3, R4
	ADD   R14, R4, R5
	ADD   R14, R5, R6
	ZERO4(V0, V1, V2, V3)
	ZERO4(V4, V5, V6, V7)
	ZERO4(V8, V9, V10, V11)
	ZERO4(V12, V13, V14, V15)
	ZERO4(V16, V17, V18, V19)
	ZERO4(V20, V21, V22, V23)
	CMP   $6, R12
	BEQ   rows6
	CMP   $5, R12
	BEQ   rows5
	CMP   $4, R12
	BEQ   rows4
	CMP   $3, R12
	BEQ   rows3
	CMP   $2, R12
	BEQ   rows2

rows1:
	STEP
	ROW1
	SUBS $1, R0, R0
	BNE  rows1
	B    store

rows2:
	STEP
	ROW1
	ROW2
	SUBS $1, R0, R0
	BNE  rows2
	B    store

rows3:
	STEP
	ROW1
	ROW2
	ROW3
	SUBS $1, R0, R0
	BNE  rows3
	B    store

rows4:
	STEP
	ROW1
	ROW2
	ROW3
	ROW4
	SUBS $1, R0, R0
	BNE  rows4
	B    store

rows5:
	STEP
	ROW1
	ROW2
	ROW3
	ROW4
	ROW5
	SUBS $1, R0, R0
	BNE  rows5
	B    store

rows6:
	STEP
	ROW1
	ROW2
	ROW3
	ROW4
	ROW5
	ROW6
	SUBS $1, R0, R0
	BNE  rows6

store:
	CBZ   R15, write
	FMOVS $1.0, F30
	VDUP  V30.S[0], V30.S4
	MOVD  R10, R13
	OLD(V0, V1, V2, V3)
	CMP   $2, R12
	BLT   write
	OLD(V4, V5, V6, V7)
	CMP   $3, R12
	BLT   write
	OLD(V8, V9, V10, V11)
	CMP   $4, R12
	BLT   write
	OLD(V12, V13, V14, V15)
	CMP   $5, R12
	BLT   write
	OLD(V16, V17, V18, V19)
	CMP   $6, R12
	BLT   write
	OLD(V20, V21, V22, V23)

write:
	WRITE(V0, V1, V2, V3)
	WRITE(V4, V5, V6, V7)
	WRITE(V8, V9, V10, V11)
	WRITE(V12, V13, V14, V15)
	WRITE(V16, V17, V18, V19)
	WRITE(V20, V21, V22, V23)

done:
	RET

// NEXT is the address of the next of 8 rows: the same again beyond the last.
#define NEXT(n, p, q) \
	CMP  $n, R4      \
	CSEL GT, R3, ZR, R5 \
	ADD  R5, p, q

// COLUMNS makes of rows V0-V3 and V4-V7, 4 elements each, 4 columns of 8, and stores them.
#define COLUMNS \
	VTRN1  V1.S4, V0.S4, V24.S4              \
	VTRN2  V1.S4, V0.S4, V25.S4              \
	VTRN1  V3.S4, V2.S4, V26.S4              \
	VTRN2  V3.S4, V2.S4, V27.S4              \
	VTRN1  V5.S4, V4.S4, V28.S4              \
	VTRN2  V5.S4, V4.S4, V29.S4              \
	VTRN1  V7.S4, V6.S4, V30.S4              \
	VTRN2  V7.S4, V6.S4, V31.S4              \
	VTRN1  V26.D2, V24.D2, V16.D2            \
	VTRN1  V30.D2, V28.D2, V17.D2            \
	VTRN1  V27.D2, V25.D2, V18.D2            \
	VTRN1  V31.D2, V29.D2, V19.D2            \
	VTRN2  V26.D2, V24.D2, V20.D2            \
	VTRN2  V30.D2, V28.D2, V21.D2            \
	VTRN2  V27.D2, V25.D2, V22.D2            \
	VTRN2  V31.D2, V29.D2, V23.D2            \
	VST1.P [V16.S4, V17.S4], (R0)(R1)        \
	VST1.P [V18.S4, V19.S4], (R0)(R1)        \
	VST1.P [V20.S4, V21.S4], (R0)(R1)        \
	VST1.P [V22.S4, V23.S4], (R0)(R1)

#define ROWS8 \
	NEXT(1, R6, R7)   \
	NEXT(2, R7, R8)   \
	NEXT(3, R8, R9)   \
	NEXT(4, R9, R10)  \
	NEXT(5, R10, R11) \
	NEXT(6, R11, R12) \
	NEXT(7, R12, R13)

// func transposeF32NEON(dst *float32, width int, src *float32, ld, rows, k int)
TEXT ·transposeF32NEON(SB), NOSPLIT, $0-48
	MOVD dst+0(FP), R0
	MOVD width+8(FP), R1
	MOVD src+16(FP), R6
	MOVD ld+24(FP), R3
	MOVD rows+32(FP), R4
	MOVD k+40(FP), R2
	LSL  $2, R1
	LSL  $2, R3
	ROWS8

f32:
	VLD1.P 16(R6), [V0.S4]
	VLD1.P 16(R7), [V1.S4]
	VLD1.P 16(R8), [V2.S4]
	VLD1.P 16(R9), [V3.S4]
	VLD1.P 16(R10), [V4.S4]
	VLD1.P 16(R11), [V5.S4]
	VLD1.P 16(R12), [V6.S4]
	VLD1.P 16(R13), [V7.S4]
	COLUMNS
	SUBS   $4, R2, R2
	BNE    f32
	RET

// WIDEN loads 4 bfloat16: the upper halves of their float32s. V15 is zero.
#define WIDEN(p, v) \
	VLD1.P 8(p), [v.H4]         \
	VZIP1  v.H8, V15.H8, v.H8

// func transposeBF16NEON(dst *float32, width int, src *uint16, ld, rows, k int)
TEXT ·transposeBF16NEON(SB), NOSPLIT, $0-48
	MOVD dst+0(FP), R0
	MOVD width+8(FP), R1
	MOVD src+16(FP), R6
	MOVD ld+24(FP), R3
	MOVD rows+32(FP), R4
	MOVD k+40(FP), R2
	LSL  $2, R1
	LSL  $1, R3
	ZERO(V15)
	ROWS8

bf16:
	WIDEN(R6, V0)
	WIDEN(R7, V1)
	WIDEN(R8, V2)
	WIDEN(R9, V3)
	WIDEN(R10, V4)
	WIDEN(R11, V5)
	WIDEN(R12, V6)
	WIDEN(R13, V7)
	COLUMNS
	SUBS $4, R2, R2
	BNE  bf16
	RET

// func stridedF32NEON(dst *float32, width int, src *float32, ld, cols, k int)
TEXT ·stridedF32NEON(SB), NOSPLIT, $0-48
	MOVD dst+0(FP), R0
	MOVD width+8(FP), R1
	MOVD src+16(FP), R2
	MOVD ld+24(FP), R3
	MOVD cols+32(FP), R4
	MOVD k+40(FP), R5
	LSL  $2, R1
	LSL  $2, R3
	CMP  $16, R4
	BEQ  f32x16

f32x8:
	VLD1.P (R2)(R3), [V0.S4, V1.S4]
	VST1.P [V0.S4, V1.S4], (R0)(R1)
	SUBS   $1, R5, R5
	BNE    f32x8
	RET

f32x16:
	VLD1.P (R2)(R3), [V0.S4, V1.S4, V2.S4, V3.S4]
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], (R0)(R1)
	SUBS   $1, R5, R5
	BNE    f32x16
	RET

// func stridedBF16NEON(dst *float32, width int, src *uint16, ld, cols, k int)
TEXT ·stridedBF16NEON(SB), NOSPLIT, $0-48
	MOVD dst+0(FP), R0
	MOVD width+8(FP), R1
	MOVD src+16(FP), R2
	MOVD ld+24(FP), R3
	MOVD cols+32(FP), R4
	MOVD k+40(FP), R5
	LSL  $2, R1
	LSL  $1, R3
	ZERO(V15)
	CMP  $16, R4
	BEQ  bf16x16

bf16x8:
	VLD1.P (R2)(R3), [V4.H8]
	VZIP1  V4.H8, V15.H8, V0.H8
	VZIP2  V4.H8, V15.H8, V1.H8
	VST1.P [V0.S4, V1.S4], (R0)(R1)
	SUBS   $1, R5, R5
	BNE    bf16x8
	RET

bf16x16:
	VLD1.P (R2)(R3), [V4.H8, V5.H8]
	VZIP1  V4.H8, V15.H8, V0.H8
	VZIP2  V4.H8, V15.H8, V1.H8
	VZIP1  V5.H8, V15.H8, V2.H8
	VZIP2  V5.H8, V15.H8, V3.H8
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], (R0)(R1)
	SUBS   $1, R5, R5
	BNE    bf16x16
	RET

// func dotsNEON(rows, k int, a *float32, lda int, b *float32, ldb int, out *float32)
// One row of a at a time: its 4 sums of 8 lanes are in V0-V7.
TEXT ·dotsNEON(SB), NOSPLIT, $0-56
	MOVD rows+0(FP), R0
	MOVD k+8(FP), R1
	MOVD a+16(FP), R2
	MOVD lda+24(FP), R3
	MOVD b+32(FP), R4
	MOVD ldb+40(FP), R5
	MOVD out+48(FP), R6
	LSL  $2, R3
	LSL  $2, R5

dotrow:
	ZERO4(V0, V1, V2, V3)
	ZERO4(V4, V5, V6, V7)
	MOVD R2, R7
	MOVD R4, R8
	ADD  R5, R8, R9
	ADD  R5, R9, R10
	ADD  R5, R10, R11
	MOVD R1, R12
	CBZ  R12, dotstore

dotstep:
	VLD1.P 32(R7), [V16.S4, V17.S4]
	VLD1.P 32(R8), [V18.S4, V19.S4]
	VLD1.P 32(R9), [V20.S4, V21.S4]
	VLD1.P 32(R10), [V22.S4, V23.S4]
	VLD1.P 32(R11), [V24.S4, V25.S4]
	VFMLA  V16.S4, V18.S4, V0.S4
	VFMLA  V17.S4, V19.S4, V1.S4
	VFMLA  V16.S4, V20.S4, V2.S4
	VFMLA  V17.S4, V21.S4, V3.S4
	VFMLA  V16.S4, V22.S4, V4.S4
	VFMLA  V17.S4, V23.S4, V5.S4
	VFMLA  V16.S4, V24.S4, V6.S4
	VFMLA  V17.S4, V25.S4, V7.S4
	SUBS   $8, R12, R12
	BNE    dotstep

dotstore:
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R6)
	VST1.P [V4.S4, V5.S4, V6.S4, V7.S4], 64(R6)
	ADD    R3, R2, R2
	SUBS   $1, R0, R0
	BNE    dotrow
	RET
