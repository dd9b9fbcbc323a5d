// qk_norm_rope: each head of each position normalised, times the gain, then rotated by its position.
//! kernel qk_norm_rope
//! kernel qk_norm_rope_128 THREADS=128
//! kernel qk_norm_rope_narrow NARROW=1
//! kernel qk_norm_rope_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 3
#include "common.glsl"
#include "storage.glsl"
#include "math.glsl"
#include "rows.glsl"
#include "rope.glsl"
#include "qk_norm_rope.glsl"

layout(binding = 0) readonly buffer B0 { WORD x[]; };
layout(binding = 1) readonly buffer B1 { float gain[]; };
layout(binding = 2) writeonly buffer B2 { WORD y[]; };

void main() {
  make_frequencies();
  uint first = group_index() * span;
  if (first >= row_count) return;
  uint last = min(first + span, row_count);
  uint half_length = half_dim / PER_E;
  for (uint base = first; base < last; base += SLOTS) {
    uint row = base + slot();
    uint end = row < last ? half_length : 0;
    uint at = row * 2 * half_length;
    Pair v[PAIRS];
    [[unroll]] for (uint k = 0; k < PAIRS; k++) {
      uint i = k * LANES + lane();
      v[k] = Pair(E(0.0), E(0.0));
      if (i < end) v[k] = Pair(GET(x, 0, at + i), GET(x, 0, at + half_length + i));
    }
    vec2 s = standardizer(v, end);
    uint position = (first_row + row) / heads % positions;
    [[unroll]] for (uint k = 0; k < PAIRS; k++) {
      uint i = k * LANES + lane();
      if (i < end) {
        E a = (v[k].a - s.x) * s.y;
        E b = (v[k].b - s.x) * s.y;
        if (HAS_GAIN) {
          a *= GET_F32(gain, i);
          b *= GET_F32(gain, half_length + i);
        }
        Pair cs = turn(position, i);
        PUT(y, 1, at + i, a * cs.a - b * cs.b)
        PUT(y, 1, at + half_length + i, b * cs.a + a * cs.b)
      }
    }
  }
}
