// The gradient of qk_norm_rope: dy rotated back, u = Rᵀ dy, then the norm's gradient over each head; with a gain, a group's rows are
// one part of dgain_rows, the sum of u x̂.
//! kernel qk_norm_rope_grad
//! kernel qk_norm_rope_grad_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "math.glsl"
#include "rows.glsl"
#include "rope.glsl"
#include "qk_norm_rope.glsl"

layout(binding = 0) readonly buffer B0 { float dy[]; };
layout(binding = 1) readonly buffer B1 { float x[]; };
layout(binding = 2) readonly buffer B2 { float gain[]; };
layout(binding = 3) writeonly buffer B3 { float dx[]; };
layout(binding = 4) writeonly buffer B4 { float dgain_rows[]; };

shared vec2 pair_sums[PAIRS * THREADS]; // of each slot

void main() {
  make_frequencies();
  uint part = group_index();
  uint first = part * span;
  if (first >= row_count) return;
  uint last = min(first + span, row_count);
  vec2 sums[PAIRS];
  [[unroll]] for (uint k = 0; k < PAIRS; k++) sums[k] = vec2(0.0);

  for (uint base = first; base < last; base += SLOTS) {
    uint row = base + slot();
    uint end = row < last ? half_dim : 0;
    uint at = row * 2 * half_dim;
    vec2 v[PAIRS];
    [[unroll]] for (uint k = 0; k < PAIRS; k++) {
      uint i = k * LANES + lane();
      v[k] = vec2(0.0);
      if (NORM != NONE && i < end) v[k] = vec2(x[at + i], x[at + half_dim + i]);
    }
    vec2 st = standardizer(v, end);
    uint position = row / heads % positions;
    vec2 u[PAIRS];
    vec2 s = vec2(0.0); // of u gain and of u gain x̂
    [[unroll]] for (uint k = 0; k < PAIRS; k++) {
      uint i = k * LANES + lane();
      u[k] = vec2(0.0);
      if (i < end) {
        vec2 d = vec2(dy[at + i], dy[at + half_dim + i]);
        vec2 cs = rotation(position, frequencies[i]);
        u[k] = vec2(d.x * cs.x + d.y * cs.y, d.y * cs.x - d.x * cs.y);
        v[k] = (v[k] - st.x) * st.y;
        if (HAS_GAIN) {
          sums[k] += u[k] * v[k];
          u[k] *= vec2(gain[i], gain[half_dim + i]);
        }
        s += vec2(u[k].x + u[k].y, u[k].x * v[k].x + u[k].y * v[k].y);
      }
    }
    vec2 m = vec2(0.0);
    if (NORM != NONE) m = row_sum(s) * inv_n;
    if (NORM != LAYER) m.x = 0.0;
    [[unroll]] for (uint k = 0; k < PAIRS; k++) {
      uint i = k * LANES + lane();
      if (i < end) {
        vec2 d = u[k];
        if (NORM != NONE) d = st.y * (d - m.x - v[k] * m.y);
        dx[at + i] = d.x;
        dx[at + half_dim + i] = d.y;
      }
    }
  }

  if (!HAS_GAIN) return;
  const uint pairs = PAIRS * LANES;
  [[unroll]] for (uint k = 0; k < PAIRS; k++) pair_sums[slot() * pairs + k * LANES + lane()] = sums[k];
  barrier();
  uint i = gl_LocalInvocationIndex; // there are at most 128 pairs
  if (i < half_dim) {
    vec2 s = vec2(0.0);
    for (uint j = 0; j < SLOTS; j++) s += pair_sums[j * pairs + i];
    dgain_rows[part * 2 * half_dim + i] = s.x;
    dgain_rows[part * 2 * half_dim + half_dim + i] = s.y;
  }
}
