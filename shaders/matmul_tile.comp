// matmul for GPUs: c = addend + op(a) op(b) by tiles in shared memory, a block of TM x TN of c in each thread's registers.
//
// The small tile gives each of KS teams of threads a slice of every BK steps of the inner dimension, and adds the teams' sums in
// order at the end: more threads for outputs that have few tiles.
//! kernel matmul_tile_128 BM=128 BN=128 BK=16 TM=8 TN=8 KS=1
//! kernel matmul_tile_64 BM=64 BN=64 BK=16 TM=4 TN=4 KS=1
//! kernel matmul_tile_32 BM=32 BN=32 BK=32 TM=4 TN=4 KS=4
//! kernel matmul_tile_32_128 BM=32 BN=32 BK=32 TM=4 TN=4 KS=2
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

const uint COLS = BN / TN; // of threads
const uint TEAM = (BM / TM) * COLS;
#undef THREADS
#define THREADS (TEAM * KS)

layout(local_size_x = (BM / TM) * (BN / TN) * KS) in;
layout(constant_id = 0) const bool TRANS_A = false;
layout(constant_id = 1) const bool TRANS_B = false;
layout(constant_id = 2) const bool HAS_ADDEND = false;
layout(push_constant) uniform Push {
  uint m; // rows of op(a) and c
  uint n; // columns of op(b) and c
  uint k;
  uint batch;
  uint tiles_m;
  uint tiles_n;
};

layout(binding = 0) readonly buffer B0 { float a[]; };
layout(binding = 1) readonly buffer B1 { float b[]; };
layout(binding = 2) readonly buffer B2 { float addend[]; };
layout(binding = 3) writeonly buffer B3 { float c[]; };

// Tiles lie by steps of the inner dimension. The extra vec4 keeps threads that store neighbouring steps apart in the banks.
const uint STRIDE_A = BM / 4 + 1;
const uint STRIDE_B = BN / 4 + 1;
shared vec4 tile_a[BK * STRIDE_A];
shared vec4 tile_b[BK * STRIDE_B];
#if KS > 1
shared vec4 team_sums[TEAM * TM * TN / 4];
#endif

// One tile of op(x), extent x BK: neighbouring threads load neighbouring elements of x in either orientation; zero past the ends.
#define LOAD(dst, stride_, x, base, trans, outer0, outers, block, inner0) \
  [[dont_unroll]] for (uint i_ = gl_LocalInvocationIndex; i_ < block * BK; i_ += THREADS) { \
    uint o_ = trans ? i_ % block : i_ / BK; \
    uint l_ = trans ? i_ / block : i_ % BK; \
    uint o = (outer0) + o_; \
    uint l = (inner0) + l_; \
    float v_ = 0.0; \
    if (o < outers && l < k) v_ = x[(base) + (trans ? l * outers + o : o * k + l)]; \
    dst[l_ * stride_ + o_ / 4][o_ % 4] = v_; \
  }

// Writes row i of every thread through shared memory, so that neighbouring threads write neighbouring elements.
#define WRITE_ROW(i) \
  if (team == 0) \
    [[unroll]] for (uint j = 0; j < TN / 4; j++) tile_a[ty * (BN / 4) + tx + j * COLS] = acc[i][j]; \
  barrier(); \
  [[dont_unroll]] for (uint e = gl_LocalInvocationIndex; e < BM / TM * BN; e += THREADS) { \
    uint row = row0 + (e / BN + i / 4 * (BM / TM)) * 4 + i % 4; \
    uint col = col0 + e % BN; \
    if (row < m && col < n) { \
      uint at = (z * m + row) * n + col; \
      float s = tile_a[e / 4][e % 4]; \
      if (HAS_ADDEND) s += addend[at]; \
      c[at] = s; \
    } \
  } \
  barrier();

void main() {
  uint group = group_index();
  if (group >= tiles_m * tiles_n) return;
  uint row0 = group / tiles_n * BM;
  uint col0 = group % tiles_n * BN;
  uint member = gl_LocalInvocationIndex % TEAM;
  uint team = gl_LocalInvocationIndex / TEAM;
  uint tx = member % COLS;
  uint ty = member / COLS;

  [[dont_unroll]] for (uint z = gl_WorkGroupID.z; z < batch; z += gl_NumWorkGroups.z) {
    vec4 acc[TM][TN / 4];
    [[unroll]] for (uint i = 0; i < TM; i++)
      [[unroll]] for (uint j = 0; j < TN / 4; j++) acc[i][j] = vec4(0.0);

    [[dont_unroll]] for (uint l0 = 0; l0 < k; l0 += BK) {
      LOAD(tile_a, STRIDE_A, a, z * m * k, TRANS_A, row0, m, BM, l0)
      LOAD(tile_b, STRIDE_B, b, z * n * k, !TRANS_B, col0, n, BN, l0)
      barrier();
      [[dont_unroll]] for (uint l = team * (BK / KS); l < (team + 1) * (BK / KS); l++) {
        vec4 u[TM / 4];
        vec4 v[TN / 4];
        [[unroll]] for (uint i = 0; i < TM / 4; i++) u[i] = tile_a[l * STRIDE_A + ty + i * (BM / TM)];
        [[unroll]] for (uint j = 0; j < TN / 4; j++) v[j] = tile_b[l * STRIDE_B + tx + j * COLS];
        [[unroll]] for (uint i = 0; i < TM; i++)
          [[unroll]] for (uint j = 0; j < TN / 4; j++) acc[i][j] = fma(vec4(u[i / 4][i % 4]), v[j], acc[i][j]);
      }
      barrier();
    }

#if KS > 1
    [[dont_unroll]] for (uint t = 1; t < KS; t++) {
      [[unroll]] for (uint i = 0; i < TM; i++)
        [[unroll]] for (uint j = 0; j < TN / 4; j++)
          if (team == t) team_sums[(i * (TN / 4) + j) * TEAM + member] = acc[i][j];
      barrier();
      [[unroll]] for (uint i = 0; i < TM; i++)
        [[unroll]] for (uint j = 0; j < TN / 4; j++)
          if (team == 0) acc[i][j] += team_sums[(i * (TN / 4) + j) * TEAM + member];
      barrier();
    }
#endif

    WRITE_ROW(0) WRITE_ROW(1) WRITE_ROW(2) WRITE_ROW(3)
#if TM == 8
    WRITE_ROW(4) WRITE_ROW(5) WRITE_ROW(6) WRITE_ROW(7)
#endif
  }
}
