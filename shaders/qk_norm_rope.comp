// qk_norm_rope: each head of each position normalised, times the gain, then rotated by its position.
//! kernel qk_norm_rope
//! kernel qk_norm_rope_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "math.glsl"
#include "rows.glsl"
#include "rope.glsl"
#include "qk_norm_rope.glsl"

layout(binding = 0) readonly buffer B0 { float x[]; };
layout(binding = 1) readonly buffer B1 { float gain[]; };
layout(binding = 2) writeonly buffer B2 { float y[]; };

void main() {
  make_frequencies();
  uint first = group_index() * span;
  if (first >= row_count) return;
  uint last = min(first + span, row_count);
  for (uint base = first; base < last; base += SLOTS) {
    uint row = base + slot();
    uint end = row < last ? half_dim : 0;
    uint at = row * 2 * half_dim;
    vec2 v[PAIRS];
    [[unroll]] for (uint k = 0; k < PAIRS; k++) {
      uint i = k * LANES + lane();
      v[k] = vec2(0.0);
      if (i < end) v[k] = vec2(x[at + i], x[at + half_dim + i]);
    }
    vec2 s = standardizer(v, end);
    uint position = row / heads % positions;
    [[unroll]] for (uint k = 0; k < PAIRS; k++) {
      uint i = k * LANES + lane();
      if (i < end) {
        vec2 u = (v[k] - s.x) * s.y;
        if (HAS_GAIN) u *= vec2(gain[i], gain[half_dim + i]);
        vec2 cs = rotation(position, frequencies[i]);
        y[at + i] = u.x * cs.x - u.y * cs.y;
        y[at + half_dim + i] = u.y * cs.x + u.x * cs.y;
      }
    }
  }
}
