// The gradient of qk_norm_rope: dy rotated back, u = Rᵀ dy, then the norm's gradient over each head; with a gain, a group's rows are
// one part of dgain_rows, the sum of u x̂.
//! kernel qk_norm_rope_grad
//! kernel qk_norm_rope_grad_128 THREADS=128
//! kernel qk_norm_rope_grad_narrow NARROW=1
//! kernel qk_norm_rope_grad_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 3
#include "common.glsl"
#include "storage.glsl"
#include "math.glsl"
#include "rows.glsl"
#include "rope.glsl"
#include "qk_norm_rope.glsl"

layout(binding = 0) readonly buffer B0 { WORD dy[]; };
layout(binding = 1) readonly buffer B1 { WORD x[]; };
layout(binding = 2) readonly buffer B2 { float gain[]; };
layout(binding = 3) writeonly buffer B3 { WORD dx[]; };
layout(binding = 4) writeonly buffer B4 { float dgain_rows[]; };

shared Pair pair_sums[PAIRS * THREADS]; // of each slot

void main() {
  make_frequencies();
  uint part = group_index();
  uint first = part * span;
  if (first >= row_count) return;
  uint last = min(first + span, row_count);
  uint half_length = half_dim / PER_E;
  const Pair zero = Pair(E(0.0), E(0.0));
  Pair sums[PAIRS];
  [[unroll]] for (uint k = 0; k < PAIRS; k++) sums[k] = zero;

  for (uint base = first; base < last; base += SLOTS) {
    uint row = base + slot();
    uint end = row < last ? half_length : 0;
    uint at = row * 2 * half_length;
    Pair v[PAIRS];
    [[unroll]] for (uint k = 0; k < PAIRS; k++) {
      uint i = k * LANES + lane();
      v[k] = zero;
      if (NORM != NO_NORM && i < end) v[k] = Pair(GET(x, 1, at + i), GET(x, 1, at + half_length + i));
    }
    vec2 st = standardizer(v, end);
    uint position = (first_row + row) / heads % positions;
    Pair u[PAIRS];
    vec2 s = vec2(0.0); // of u gain and of u gain x̂
    [[unroll]] for (uint k = 0; k < PAIRS; k++) {
      uint i = k * LANES + lane();
      u[k] = zero;
      if (i < end) {
        E a = GET(dy, 0, at + i);
        E b = GET(dy, 0, at + half_length + i);
        Pair cs = turn(position, i);
        u[k] = Pair(a * cs.a + b * cs.b, b * cs.a - a * cs.b);
        v[k] = Pair((v[k].a - st.x) * st.y, (v[k].b - st.x) * st.y);
        if (HAS_GAIN) {
          sums[k].a += u[k].a * v[k].a;
          sums[k].b += u[k].b * v[k].b;
          u[k].a *= GET_F32(gain, i);
          u[k].b *= GET_F32(gain, half_length + i);
        }
        s += vec2(TOTAL(u[k].a + u[k].b), TOTAL(u[k].a * v[k].a + u[k].b * v[k].b));
      }
    }
    vec2 m = vec2(0.0);
    if (NORM != NO_NORM) m = row_sum(s) * inv_n;
    if (NORM != LAYER) m.x = 0.0;
    [[unroll]] for (uint k = 0; k < PAIRS; k++) {
      uint i = k * LANES + lane();
      if (i < end) {
        E a = u[k].a;
        E b = u[k].b;
        if (NORM != NO_NORM) {
          a = st.y * (a - m.x - v[k].a * m.y);
          b = st.y * (b - m.x - v[k].b * m.y);
        }
        PUT(dx, 2, at + i, a)
        PUT(dx, 2, at + half_length + i, b)
      }
    }
  }

  if (!HAS_GAIN) return;
  const uint pairs = PAIRS * LANES;
  [[unroll]] for (uint k = 0; k < PAIRS; k++) pair_sums[slot() * pairs + k * LANES + lane()] = sums[k];
  barrier();
  uint i = gl_LocalInvocationIndex; // there are at most 128 pairs
  if (i < half_length) {
    Pair s = zero;
    for (uint j = 0; j < SLOTS; j++) {
      s.a += pair_sums[j * pairs + i].a;
      s.b += pair_sums[j * pairs + i].b;
    }
    PUT_F32(dgain_rows, part * 2 * half_length + i, s.a)
    PUT_F32(dgain_rows, part * 2 * half_length + half_length + i, s.b)
  }
}
