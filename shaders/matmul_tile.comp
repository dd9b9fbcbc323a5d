// matmul for GPUs: c = addend + op(a) op(b) by tiles in shared memory, a block of TM x TN of c in each thread's registers.
//
// While a thread multiplies one step of BK, it loads the next one into registers, and then writes it to the other of two buffers in shared
// memory: one barrier a step, and the loads' latency is hidden. A tile with few outputs has KS teams of threads, each of which takes its part
// of every step; their sums are added in order. Few tiles with a long inner dimension are split into parts, each with a c of its own in scratch memory,
// which matmul_sum adds up.
//
// Tile sizes are compiled in, since Metal's constants cannot size arrays.
//! kernel matmul_tile_128 BM=128 BN=128 BK=8 TM=8 TN=8 KS=1
//! kernel matmul_tile_64 BM=64 BN=64 BK=8 TM=8 TN=4 KS=1
//! kernel matmul_tile_32 BM=32 BN=32 BK=16 TM=4 TN=4 KS=2
//! kernel matmul_tile_8 BM=8 BN=32 BK=16 TM=4 TN=4 KS=8
//
// Those for operands of 16 bits, or of several formats, widen what goes into shared memory and round what comes out.
//! kernel matmul_tile_128_narrow NARROW=1 BM=128 BN=128 BK=8 TM=8 TN=8 KS=1
//! kernel matmul_tile_64_narrow NARROW=1 BM=64 BN=64 BK=8 TM=8 TN=4 KS=1
//! kernel matmul_tile_32_narrow NARROW=1 BM=32 BN=32 BK=16 TM=4 TN=4 KS=2
//! kernel matmul_tile_8_narrow NARROW=1 BM=8 BN=32 BK=16 TM=4 TN=4 KS=8
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

const uint COLS = BN / TN; // of threads
const uint TEAM = (BM / TM) * COLS;
#undef THREADS
#define THREADS (TEAM * KS)
const uint STEPS = BK / KS; // of the inner dimension, for a team

layout(local_size_x = (BM / TM) * (BN / TN) * KS) in;
layout(constant_id = 0) const bool TRANS_A = false;
layout(constant_id = 1) const bool TRANS_B = false;
#ifdef NARROW
#include "formats.glsl"
layout(constant_id = 2) const uint ADDEND = NONE; // formats
layout(constant_id = 7) const uint FORMAT_A = F32;
layout(constant_id = 8) const uint FORMAT_B = F32;
layout(constant_id = 9) const uint OUT = F32;
#else
layout(constant_id = 2) const bool HAS_ADDEND = false;
#endif
layout(constant_id = 3) const bool VEC_A = false; // rows of a as it is stored are whole vec4s, and it is bound as such
layout(constant_id = 4) const bool VEC_B = false;
layout(constant_id = 5) const bool VEC_C = false;
layout(constant_id = 6) const uint UNROLL = 4; // divides STEPS
layout(push_constant) uniform Push {
  uint m; // rows of op(a) and c
  uint n; // columns of op(b) and c
  uint k;
  uint batch;
  uint tiles_m;
  uint tiles_n;
  uint parts; // of the inner dimension
  uint part; // their length, a multiple of BK
};

#ifdef NARROW
#define WORD uint
#define WORD4 uvec4
#else
#define WORD float
#define WORD4 vec4
#endif
layout(binding = 0) readonly buffer B0 { WORD a[]; };
layout(binding = 1) readonly buffer B1 { WORD b[]; };
layout(binding = 2) readonly buffer B2 { WORD addend[]; };
layout(binding = 3) writeonly buffer B3 { WORD c[]; }; // (parts, batch, m, n)
layout(binding = 4) readonly buffer B4 { WORD4 a4[]; };
layout(binding = 5) readonly buffer B5 { WORD4 b4[]; };
layout(binding = 6) readonly buffer B6 { WORD4 addend4[]; };
layout(binding = 7) writeonly buffer B7 { WORD4 c4[]; };
#ifdef NARROW // four elements of 16 bits
layout(binding = 8) readonly buffer B8 { uvec2 a2[]; };
layout(binding = 9) readonly buffer B9 { uvec2 b2[]; };
layout(binding = 10) readonly buffer B10 { uvec2 addend2[]; };
layout(binding = 11) writeonly buffer B11 { uvec2 c2[]; };
#endif

// A row is a step of the inner dimension. The extra vec4 spreads the four rows that a thread writes at once over the banks.
const uint STRIDE_A = BM / 4 + 1;
const uint STRIDE_B = BN / 4 + 1;
const uint HALF_A = BK * STRIDE_A;
const uint HALF_B = BK * STRIDE_B;
shared vec4 tile_a[2 * HALF_A];
shared vec4 tile_b[2 * HALF_B]; // at the end also the teams' sums, and rows of c

// One load a thread is best: with two, SwiftShader takes minutes and gigabytes to compile this.
const uint LOADS_A = (BM * BK / 4 + THREADS - 1) / THREADS; // vec4s a thread
const uint LOADS_B = (BN * BK / 4 + THREADS - 1) / THREADS;

// Where the thread's vec4 number i of a tile (block x BK) lies: along the rows of x as it is stored, which are outer elements if ACROSS. Pairs of threads take
// 8 steps of an outer element otherwise.
uint outer_of(uint i, bool across, uint block) { return across ? i % (block / 4) * 4 : i / 2 % block; }
uint inner_of(uint i, bool across, uint block) { return across ? i / (block / 4) : i % 2 * 4 + i / (2 * block) * 8; }

// Loads the thread's part of a tile. Outer elements past the end repeat one that is there, as what comes of them is not written; so do steps past the
// end, until KEEP makes them zero: nothing here waits for the loads.
#ifdef NARROW
#define FOUR(dst, x, x4, x2, format, at) \
  if ((format) == F32) dst = x4[(at) / 4]; \
  else dst = uvec4(x2[(at) / 4], 0u, 0u);
#define ONES(dst, x, format, at, more) \
  if ((format) == F32) dst = uvec4(x[at], x[(at) + more[0]], x[(at) + more[1]], x[(at) + more[2]]); \
  else dst = uvec4(half_of(x[(at) / 2], at) | half_of(x[((at) + more[0]) / 2], (at) + more[0]) << 16, \
                   half_of(x[((at) + more[1]) / 2], (at) + more[1]) | half_of(x[((at) + more[2]) / 2], (at) + more[2]) << 16, 0u, 0u);
#define FLOATS(words, format) widen4(words, format)
#else
#define FOUR(dst, x, x4, x2, format, at) dst = x4[(at) / 4];
#define ONES(dst, x, format, at, more) dst = vec4(x[at], x[(at) + more[0]], x[(at) + more[1]], x[(at) + more[2]]);
#define FLOATS(words, format) words
#endif

#define FETCH(dst, loads, x, x4, x2, format, VEC, base, across, outer0, outers, block, inner0) \
  [[unroll]] for (uint i_ = 0; i_ < loads; i_++) { \
    uint e_ = gl_LocalInvocationIndex + i_ * THREADS; \
    uint l_ = (inner0) + inner_of(e_, across, block); \
    uint o_ = min((outer0) + outer_of(e_, across, block), (outers) - (across && VEC ? 4 : 1)); \
    uint at_ = (base) + (l_ < end ? across ? l_ * (outers) + o_ : o_ * k + l_ : 0); \
    if (VEC) { \
      FOUR(dst[i_], x, x4, x2, format, at_) \
    } else { \
      uvec3 more_ = min(uvec3(1, 2, 3), uvec3(l_ < end ? across ? (outers) - 1 - o_ : end - 1 - l_ : 0)); \
      ONES(dst[i_], x, format, at_, more_) \
    } \
  }

#define KEEP(tile, half, src, loads, format, VEC, across, block, stride_, inner0) \
  [[unroll]] for (uint i_ = 0; i_ < loads; i_++) { \
    uint e_ = gl_LocalInvocationIndex + i_ * THREADS; \
    uint l_ = inner_of(e_, across, block); \
    uint o_ = outer_of(e_, across, block); \
    uvec4 steps_ = uvec4((inner0) + l_) + (across || VEC ? uvec4(0) : uvec4(0, 1, 2, 3)); \
    vec4 v_ = mix(vec4(0.0), FLOATS(src[i_], format), lessThan(steps_, uvec4(end))); \
    uint to_ = (half) + l_ * stride_ + o_ / 4; \
    if (block * BK / 4 % THREADS == 0 || e_ < block * BK / 4) { \
      if (across) { \
        tile[to_] = v_; \
      } else { \
        tile[to_][o_ % 4] = v_.x; \
        tile[to_ + stride_][o_ % 4] = v_.y; \
        tile[to_ + 2 * stride_][o_ % 4] = v_.z; \
        tile[to_ + 3 * stride_][o_ % 4] = v_.w; \
      } \
    } \
  }

#define FETCH_BOTH(l0) \
  FETCH(next_a, LOADS_A, a, a4, a2, FORMAT_A, VEC_A, z * m * k, TRANS_A, row0, m, BM, l0) \
  FETCH(next_b, LOADS_B, b, b4, b2, FORMAT_B, VEC_B, z * n * k, !TRANS_B, col0, n, BN, l0)

#define KEEP_BOTH(other, l0) \
  KEEP(tile_a, other * HALF_A, next_a, LOADS_A, FORMAT_A, VEC_A, TRANS_A, BM, STRIDE_A, l0) \
  KEEP(tile_b, other * HALF_B, next_b, LOADS_B, FORMAT_B, VEC_B, !TRANS_B, BN, STRIDE_B, l0)

// Steps l to l + UNROLL of the tiles in shared memory.
#define MULTIPLY(l) \
  [[unroll]] for (uint s = 0; s < UNROLL; s++) { \
    vec4 u[TM / 4]; \
    vec4 v[TN / 4]; \
    [[unroll]] for (uint i = 0; i < TM / 4; i++) u[i] = tile_a[at_a + (l + s) * STRIDE_A + i * (BM / TM)]; \
    [[unroll]] for (uint j = 0; j < TN / 4; j++) v[j] = tile_b[at_b + (l + s) * STRIDE_B + j * COLS]; \
    [[unroll]] for (uint i = 0; i < TM; i++) \
      [[unroll]] for (uint j = 0; j < TN / 4; j++) acc[i][j] = fma(vec4(u[i / 4][i % 4]), v[j], acc[i][j]); \
  }

#ifdef NARROW
#define WRITE(e, at, col) \
  { \
    vec4 four_ = tile_b[(e) / 4]; \
    vec2 s = (e) % 4 == 0 ? four_.xy : four_.zw; \
    bool both_ = (col) + 1 < n; \
    if (ADDEND != NONE) s += vec2(ELEMENT_AT(addend, at, ADDEND), both_ ? ELEMENT_AT(addend, (at) + 1, ADDEND) : 0.0); \
    uvec2 bits_ = floatBitsToUint(s); \
    if (OUT == F32) { \
      c[at] = bits_.x; \
      if (both_) c[(at) + 1] = bits_.y; \
    } else { \
      c[(at) / 2] = narrow(bits_.x, OUT) | narrow(bits_.y, OUT) << 16; \
    } \
  }
#define WIDTH 2 // elements that a thread writes: a word; rows are of whole words where they are of 16 bits
#else
#define WRITE(e, at, col) \
  { \
    float s = tile_b[(e) / 4][(e) % 4]; \
    if (HAS_ADDEND) s += addend[at]; \
    c[at] = s; \
  }
#define WIDTH 1
#endif

// Writes row i of every thread through shared memory, so that neighbouring threads write neighbouring elements.
#define WRITE_ROW(i) \
  if (team == 0) \
    [[unroll]] for (uint j = 0; j < TN / 4; j++) tile_b[ty * (BN / 4) + tx + j * COLS] = acc[i][j]; \
  barrier(); \
  [[dont_unroll]] for (uint e = gl_LocalInvocationIndex * WIDTH; e < BM / TM * BN; e += THREADS * WIDTH) { \
    uint row = row0 + (e / BN + i / 4 * (BM / TM)) * 4 + i % 4; \
    uint col = col0 + e % BN; \
    if (row < m && col < n) { \
      uint at = out0 + row * n + col; \
      WRITE(e, at, col) \
    } \
  } \
  barrier();

void main() {
  uint group = group_index();
  if (group >= tiles_m * tiles_n) return;
  // Groups that run together share rows and columns: they go down 8 tiles, then to the right.
  uint first = group / (8 * tiles_n) * 8;
  uint high = min(tiles_m - first, 8);
  uint row0 = (first + group % (8 * tiles_n) % high) * BM;
  uint col0 = group % (8 * tiles_n) / high * BN;
  uint member = gl_LocalInvocationIndex % TEAM;
  uint team = gl_LocalInvocationIndex / TEAM;
  uint tx = member % COLS;
  uint ty = member / COLS;

  [[dont_unroll]] for (uint item = gl_WorkGroupID.z; item < batch * parts; item += gl_NumWorkGroups.z) {
    uint z = item % batch;
    uint start = item / batch * part;
    uint end = min(start + part, k);
    uint out0 = item * m * n;
    vec4 acc[TM][TN / 4];
    [[unroll]] for (uint i = 0; i < TM; i++)
      [[unroll]] for (uint j = 0; j < TN / 4; j++) acc[i][j] = vec4(0.0);

    WORD4 next_a[LOADS_A], next_b[LOADS_B];
    FETCH_BOTH(start)
    KEEP_BOTH(0, start)
    barrier();
    uint now = 0;
    [[dont_unroll]] for (uint l0 = start; l0 < end; l0 += BK) {
      FETCH_BOTH(l0 + BK)
      uint at_a = now * HALF_A + team * STEPS * STRIDE_A + ty;
      uint at_b = now * HALF_B + team * STEPS * STRIDE_B + tx;
      if (UNROLL == STEPS) { // without any loop, so that compilers see one block and leave the loads at its start
        MULTIPLY(0)
      } else {
        [[dont_unroll]] for (uint l = 0; l < STEPS; l += UNROLL) MULTIPLY(l)
      }
      now = 1 - now;
      KEEP_BOTH(now, l0 + BK)
      barrier();
    }

#if KS > 1
    [[dont_unroll]] for (uint t = 1; t < KS; t++) {
      [[unroll]] for (uint i = 0; i < TM; i++)
        [[unroll]] for (uint j = 0; j < TN / 4; j++)
          if (team == t) tile_b[(i * (TN / 4) + j) * TEAM + member] = acc[i][j];
      barrier();
      [[unroll]] for (uint i = 0; i < TM; i++)
        [[unroll]] for (uint j = 0; j < TN / 4; j++)
          if (team == 0) acc[i][j] += tile_b[(i * (TN / 4) + j) * TEAM + member];
      barrier();
    }
#endif

    if (VEC_C) {
      [[unroll]] for (uint i = 0; i < TM; i++)
        [[unroll]] for (uint j = 0; j < TN / 4; j++) {
          uint row = row0 + (ty + i / 4 * (BM / TM)) * 4 + i % 4;
          uint col = col0 + (tx + j * COLS) * 4;
          if (team == 0 && row < m && col < n) {
            uint at = (out0 + row * n + col) / 4;
            vec4 s = acc[i][j];
#ifdef NARROW
            if (ADDEND == F32) s += uintBitsToFloat(addend4[at]);
            else if (ADDEND != NONE) s += widen4(uvec4(addend2[at], 0u, 0u), ADDEND);
            uvec4 bits = floatBitsToUint(s);
            if (OUT == F32) c4[at] = bits;
            else c2[at] = uvec2(narrow(bits.x, OUT) | narrow(bits.y, OUT) << 16, narrow(bits.z, OUT) | narrow(bits.w, OUT) << 16);
#else
            if (HAS_ADDEND) s += addend4[at];
            c4[at] = s;
#endif
          }
        }
    } else {
      WRITE_ROW(0) WRITE_ROW(1) WRITE_ROW(2) WRITE_ROW(3)
#if TM == 8
      WRITE_ROW(4) WRITE_ROW(5) WRITE_ROW(6) WRITE_ROW(7)
#endif
    }
  }
}
