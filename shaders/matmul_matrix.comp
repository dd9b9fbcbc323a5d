// matmul by cooperative matrices: c = addend + op(a) op(b) with a and b of 16 bits, and sums in float32.
//
// A group's tile of c is spread over its subgroups, SM x SN matrices (FM x FN) each. Steps of BK of a and b go through registers into shared memory,
// in which both lie along the inner dimension, whatever their orientation: that is how matrix units want them. What is past an end is zero there.
//! glslang 15
//! kernel matmul_matrix_f16_128 FORMAT=2 BM=128 BN=128 THREADS=256
//! kernel matmul_matrix_f16_64 FORMAT=2 BM=64 BN=64 THREADS=128
//! kernel matmul_matrix_bf16_128 FORMAT=1 BM=128 BN=128 THREADS=256
//! kernel matmul_matrix_bf16_64 FORMAT=1 BM=64 BN=64 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#if FORMAT == 1
#extension GL_EXT_bfloat16 : require
#define ELEMENT bfloat16_t
#else
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define ELEMENT float16_t
#endif
#include "common.glsl"
#include "formats.glsl"

#define BK 32

layout(local_size_x = THREADS) in;
layout(constant_id = 0) const bool TRANS_A = false;
layout(constant_id = 1) const bool TRANS_B = false;
layout(constant_id = 2) const uint ADDEND = NONE; // its format
layout(constant_id = 3) const uint OUT = F32; // c's format
layout(constant_id = 4) const bool VEC_A = false; // rows of a as it is stored are whole uvec4s
layout(constant_id = 5) const bool VEC_B = false;
layout(constant_id = 6) const uint FM = 16; // the matrices' sizes
layout(constant_id = 7) const uint FN = 16;
layout(constant_id = 8) const uint FK = 16;
layout(constant_id = 9) const uint SM = 2; // matrices of c that a subgroup has
layout(constant_id = 10) const uint SN = 4;
layout(push_constant) uniform Push {
  uint m; // rows of op(a) and c
  uint n; // columns of op(b) and c; even where c is of 16 bits
  uint k;
  uint batch;
  uint tiles_m;
  uint tiles_n;
  uint parts; // of the inner dimension
  uint part; // their length, a multiple of BK
};

layout(binding = 0) readonly buffer B0 { uint a[]; };
layout(binding = 1) readonly buffer B1 { uint b[]; };
layout(binding = 2) readonly buffer B2 { uint addend[]; };
layout(binding = 3) writeonly buffer B3 { uint c[]; }; // (parts, batch, m, n)
layout(binding = 4) readonly buffer B4 { uvec4 a8[]; };
layout(binding = 5) readonly buffer B5 { uvec4 b8[]; };

// Rows of a tile are outer elements; the uvec4 more keeps rows that are read at once apart in the banks.
const uint STRIDE = BK / 8 + 1;
const uint TILE_B = BM * STRIDE;
shared uvec4 tile[(BM + BN) * STRIDE]; // at the end also matrices of c

// A thread loads blocks of 8 elements along the rows of x as it is stored: two neighbouring steps if those are outer elements (ACROSS), which
// become words of two steps; else two outer elements.
#define BLOCKS(block) (block * BK / 16 / THREADS)

// Eight elements from x[at], of which `count` are there. Vectors are loaded without a branch, so that nothing waits for them: where none is, another one comes,
// which KEEP drops if it lies past the end of the inner dimension. Of what lies past another end, nothing is written.
#define EIGHT(var, x, x8, VEC, at, count) \
  { \
    if (VEC) { \
      var = x8[(count) > 0 ? (at) / 8 : 0]; \
    } else { \
      var = uvec4(0); \
      [[unroll]] for (uint j_ = 0; j_ < 8; j_++) \
        if (j_ < (count)) var[j_ / 2] |= half_of(x[((at) + j_) / 2], (at) + j_) << (j_ % 2 * 16); \
    } \
  }

uint left(uint from, uint end) { return from < end ? end - from : 0u; }

// Block number i_ of a tile: outer element o_, step l_.
#define PLACE(block, across) \
  uint e_ = gl_LocalInvocationIndex + i_ * THREADS; \
  uint l_ = across ? e_ % (BK / 2) * 2 : e_ % (BK / 8) * 8; \
  uint o_ = across ? e_ / (BK / 2) * 8 : e_ / (BK / 8) * 2;

#define FETCH(dst, x, x8, VEC, base, across, outer0, outers, block, inner0) \
  [[unroll]] for (uint i_ = 0; i_ < BLOCKS(block); i_++) { \
    PLACE(block, across) \
    [[unroll]] for (uint h_ = 0; h_ < 2; h_++) { \
      uint l = (inner0) + l_ + (across ? h_ : 0); \
      uint o = (outer0) + o_ + (across ? 0 : h_); \
      uint there_ = across ? (l < end ? left(o, outers) : 0u) : (o < outers ? left(l, end) : 0u); \
      uint at_ = (base) + (across ? l * (outers) + o : o * k + l); \
      EIGHT(dst[2 * i_ + h_], x, x8, VEC, at_, there_) \
    } \
  }

#define KEEP(src, to, across, block, inner0) \
  [[unroll]] for (uint i_ = 0; i_ < BLOCKS(block); i_++) { \
    PLACE(block, across) \
    if ((inner0) + l_ >= end) src[2 * i_] = uvec4(0); \
    if ((inner0) + l_ + (across ? 1 : 0) >= end) src[2 * i_ + 1] = uvec4(0); \
    if (across) { \
      [[unroll]] for (uint j_ = 0; j_ < 8; j_++) { \
        uint even_ = half_of(src[2 * i_][j_ / 2], j_); \
        uint odd_ = half_of(src[2 * i_ + 1][j_ / 2], j_); \
        tile[(to) + (o_ + j_) * STRIDE + l_ / 8][l_ / 2 % 4] = even_ | odd_ << 16; \
      } \
    } else { \
      tile[(to) + o_ * STRIDE + l_ / 8] = src[2 * i_]; \
      tile[(to) + (o_ + 1) * STRIDE + l_ / 8] = src[2 * i_ + 1]; \
    } \
  }

#define FETCH_BOTH(l0) \
  FETCH(next_a, a, a8, VEC_A, z * m * k, TRANS_A, row0, m, BM, l0) \
  FETCH(next_b, b, b8, VEC_B, z * n * k, !TRANS_B, col0, n, BN, l0)

void main() {
  uint group = group_index();
  if (group >= tiles_m * tiles_n) return;
  // Groups that run together share rows and columns: they go down 8 tiles, then to the right.
  uint first = group / (8 * tiles_n) * 8;
  uint high = min(tiles_m - first, 8);
  uint row0 = (first + group % (8 * tiles_n) % high) * BM;
  uint col0 = group % (8 * tiles_n) / high * BN;
  uint wide = BN / FN / SN; // subgroups side by side
  uint row_s = gl_SubgroupID / wide * SM * FM; // of the subgroup, in the tile
  uint col_s = gl_SubgroupID % wide * SN * FN;

  [[dont_unroll]] for (uint item = gl_WorkGroupID.z; item < batch * parts; item += gl_NumWorkGroups.z) {
    uint z = item % batch;
    uint start = item / batch * part;
    uint end = min(start + part, k);
    coopmat<float, gl_ScopeSubgroup, FM, FN, gl_MatrixUseAccumulator> acc[SM * SN];
    [[unroll]] for (uint i = 0; i < SM * SN; i++) acc[i] = coopmat<float, gl_ScopeSubgroup, FM, FN, gl_MatrixUseAccumulator>(0.0);

    uvec4 next_a[2 * BLOCKS(BM)];
    uvec4 next_b[2 * BLOCKS(BN)];
    FETCH_BOTH(start)
    [[dont_unroll]] for (uint l0 = start; l0 < end; l0 += BK) {
      KEEP(next_a, 0, TRANS_A, BM, l0)
      KEEP(next_b, TILE_B, !TRANS_B, BN, l0)
      barrier();
      FETCH_BOTH(l0 + BK)
      [[unroll]] for (uint l = 0; l < BK; l += FK) {
        coopmat<ELEMENT, gl_ScopeSubgroup, FM, FK, gl_MatrixUseA> u[SM];
        [[unroll]] for (uint i = 0; i < SM; i++)
          coopMatLoad(u[i], tile, (row_s + i * FM) * STRIDE + l / 8, STRIDE, gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint j = 0; j < SN; j++) {
          coopmat<ELEMENT, gl_ScopeSubgroup, FK, FN, gl_MatrixUseB> v;
          coopMatLoad(v, tile, TILE_B + (col_s + j * FN) * STRIDE + l / 8, STRIDE, gl_CooperativeMatrixLayoutColumnMajor);
          [[unroll]] for (uint i = 0; i < SM; i++) acc[i * SN + j] = coopMatMulAdd(u[i], v, acc[i * SN + j]);
        }
      }
      barrier();
    }

    // Each subgroup's matrices go through its own part of the tile, one after another.
    uint at_s = gl_SubgroupID * (FM * FN / 4);
    [[unroll]] for (uint i = 0; i < SM; i++)
      [[unroll]] for (uint j = 0; j < SN; j++) {
        coopMatStore(acc[i * SN + j], tile, at_s, FN / 4, gl_CooperativeMatrixLayoutRowMajor);
        barrier();
        [[dont_unroll]] for (uint e = 2 * gl_SubgroupInvocationID; e < FM * FN; e += 2 * gl_SubgroupSize) {
          uint row = row0 + row_s + i * FM + e / FN;
          uint col = col0 + col_s + j * FN + e % FN;
          uint at = (item * m + row) * n + col;
          uvec4 four = tile[at_s + e / 4];
          vec2 s = uintBitsToFloat(e % 4 == 0 ? four.xy : four.zw);
          if (row < m && col < n) {
            bool both = col + 1 < n;
            if (ADDEND != NONE) s += vec2(ELEMENT_AT(addend, at, ADDEND), both ? ELEMENT_AT(addend, at + 1, ADDEND) : 0.0);
            uvec2 bits = floatBitsToUint(s);
            if (OUT == F32) {
              c[at] = bits.x;
              if (both) c[at + 1] = bits.y;
            } else {
              c[at / 2] = narrow(bits.x, OUT) | narrow(bits.y, OUT) << 16;
            }
          }
        }
        barrier();
      }
  }
}
