// matmul for devices that are a CPU: one subgroup a group, and no shared memory. Loads are what costs there and arithmetic is nearly
// free, so each lane loads one of WIDTH steps of a row of op(a), and passes it to the others by broadcast while it goes over its own columns.
// Branches cost compile time: loads past an end go to an element that is there, and the output is written by a loop.
//! kernel matmul_subgroup_4 WIDTH=4 ROWS=8 COLS=8
//! kernel matmul_subgroup_8 WIDTH=8 ROWS=16 COLS=8
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_ballot : require
#include "common.glsl"

layout(local_size_x = WIDTH) in; // the device's subgroup size
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

shared float tile[ROWS * COLS * WIDTH];

// Step l0 + step of the inner dimension: the lane's columns of op(b), times every row's element.
#define STEP(step) \
  { \
    uint l_ = l0 + step; \
    bool in_ = l_ < k; \
    uint at_ = b_base + (in_ ? l_ : 0u) * step_b; \
    float v_[COLS]; \
    [[unroll]] for (uint j = 0; j < COLS; j++) v_[j] = mix(0.0, b[at_ + columns[j]], in_); \
    [[unroll]] for (uint i = 0; i < ROWS; i++) { \
      float u_ = subgroupBroadcast(u[i], step); \
      [[unroll]] for (uint j = 0; j < COLS; j++) acc[i][j] = fma(u_, v_[j], acc[i][j]); \
    } \
  }

void main() {
  uint group = group_index();
  if (group >= tiles_m * tiles_n) return;
  uint lane = gl_SubgroupInvocationID;
  uint row0 = group / tiles_n * ROWS;
  uint col0 = group % tiles_n * (WIDTH * COLS) + lane;
  uint step_a = TRANS_A ? m : 1u;
  uint step_b = TRANS_B ? 1u : n;
  uint rows[ROWS], columns[COLS]; // where they start; those past the end repeat the last, and are not written
  [[unroll]] for (uint i = 0; i < ROWS; i++) rows[i] = min(row0 + i, m - 1) * (TRANS_A ? 1u : k);
  [[unroll]] for (uint j = 0; j < COLS; j++) columns[j] = min(col0 + j * WIDTH, n - 1) * (TRANS_B ? k : 1u);

  [[dont_unroll]] for (uint z = gl_WorkGroupID.z; z < batch; z += gl_NumWorkGroups.z) {
    uint a_base = z * m * k;
    uint b_base = z * n * k;
    float acc[ROWS][COLS];
    [[unroll]] for (uint i = 0; i < ROWS; i++)
      [[unroll]] for (uint j = 0; j < COLS; j++) acc[i][j] = 0.0;

    [[dont_unroll]] for (uint l0 = 0; l0 < k; l0 += WIDTH) {
      uint mine = l0 + lane;
      bool in_a = mine < k;
      uint at = a_base + (in_a ? mine : 0u) * step_a;
      float u[ROWS];
      [[unroll]] for (uint i = 0; i < ROWS; i++) u[i] = mix(0.0, a[at + rows[i]], in_a);
      STEP(0) STEP(1) STEP(2) STEP(3)
#if WIDTH == 8
      STEP(4) STEP(5) STEP(6) STEP(7)
#endif
    }

    // Each lane reads back only what it wrote, so that no barrier is needed.
    [[unroll]] for (uint i = 0; i < ROWS; i++)
      [[unroll]] for (uint j = 0; j < COLS; j++) tile[(i * COLS + j) * WIDTH + lane] = acc[i][j];
    [[dont_unroll]] for (uint e = 0; e < ROWS * COLS; e++) {
      uint row = row0 + e / COLS;
      uint col = col0 + e % COLS * WIDTH;
      if (row < m && col < n) {
        uint out_at = (z * m + row) * n + col;
        float s = tile[e * WIDTH + lane];
        if (HAS_ADDEND) s += addend[out_at];
        c[out_at] = s;
      }
    }
  }
}
