// The gradients of rms_norm and layer_norm: with r the reciprocal root, x̂ the normalised row and u = dy gain,
// dx = addend + r (u - mean(u) - x̂ mean(u x̂)), without mean(u) unless CENTERED; and, with a gain, dgain_rows[part] = sum of dy x̂.
//
// A group takes `span` consecutive rows, SLOTS at a time: with a gain they are one part of dgain_rows.
//! kernel norm_grad
//! kernel norm_grad_128 THREADS=128
//! kernel norm_grad_narrow NARROW=1
//! kernel norm_grad_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 4
#include "common.glsl"
#include "storage.glsl"
#include "math.glsl"
#include "rows.glsl"

layout(constant_id = 1) const bool CENTERED = false;
layout(constant_id = 2) const bool HAS_GAIN = false;
layout(constant_id = 3) const bool HAS_ADDEND = false;
layout(push_constant) uniform Push {
  uint row_count;
  uint n; // elements of a row
  uint span; // rows a group
  float inv_n;
  float eps;
};

layout(binding = 0) readonly buffer B0 { WORD dy[]; };
layout(binding = 1) readonly buffer B1 { WORD x[]; };
layout(binding = 2) readonly buffer B2 { float gain[]; };
layout(binding = 3) readonly buffer B3 { WORD addend[]; };
layout(binding = 4) writeonly buffer B4 { WORD dx[]; };
layout(binding = 5) buffer B5 { float dgain_rows[]; };

// The first KEPT columns of a lane are summed in registers, those after it (of rows so long that a group has one slot) in dgain_rows.
const uint KEPT = 8 / PER_E;

shared E column_sums[KEPT * THREADS]; // the kept columns of each slot

void main() {
  uint part = group_index();
  uint first = part * span;
  if (first >= row_count) return;
  uint last = min(first + span, row_count);
  uint length = n / PER_E;
  E sums[KEPT];
  [[unroll]] for (uint k = 0; k < KEPT; k++) sums[k] = E(0.0);
  if (HAS_GAIN)
    for (uint i = KEPT * LANES + lane(); i < length; i += LANES) PUT_F32(dgain_rows, part * length + i, E(0.0))

  for (uint base = first; base < last; base += SLOTS) {
    uint row = base + slot();
    uint end = row < last ? length : 0;
    uint at = row * length;
    float mean = 0.0;
    if (CENTERED) {
      float s = 0.0;
      for (uint i = lane(); i < end; i += LANES) s += TOTAL(GET(x, 1, at + i));
      mean = row_sum(s) * inv_n;
    }
    float square = 0.0;
    for (uint i = lane(); i < end; i += LANES) {
      E v = GET(x, 1, at + i) - mean;
      square += TOTAL(v * v);
    }
    float r = rsqrt_(row_sum(square) * inv_n + eps);
    vec2 s = vec2(0.0); // of u and of u x̂
    for (uint i = lane(); i < end; i += LANES) {
      E u = GET(dy, 0, at + i);
      if (HAS_GAIN) u *= GET_F32(gain, i);
      s += vec2(TOTAL(u), TOTAL(u * ((GET(x, 1, at + i) - mean) * r)));
    }
    vec2 m = row_sum(s) * inv_n;
    if (!CENTERED) m.x = 0.0;
    for (uint i = lane(); i < end; i += LANES) {
      E u = GET(dy, 0, at + i);
      if (HAS_GAIN) u *= GET_F32(gain, i);
      E v = r * (u - m.x - (GET(x, 1, at + i) - mean) * r * m.y);
      if (HAS_ADDEND) v += GET(addend, 2, at + i);
      PUT(dx, 3, at + i, v)
    }
    if (HAS_GAIN) {
      [[unroll]] for (uint k = 0; k < KEPT; k++) {
        uint i = k * LANES + lane();
        if (i < end) sums[k] += GET(dy, 0, at + i) * ((GET(x, 1, at + i) - mean) * r);
      }
      for (uint i = KEPT * LANES + lane(); i < end; i += LANES)
        PUT_F32(dgain_rows, part * length + i, GET_F32(dgain_rows, part * length + i) + GET(dy, 0, at + i) * ((GET(x, 1, at + i) - mean) * r))
    }
  }

  if (!HAS_GAIN) return;
  const uint columns = KEPT * LANES;
  [[unroll]] for (uint k = 0; k < KEPT; k++) column_sums[slot() * columns + k * LANES + lane()] = sums[k];
  barrier();
  for (uint i = gl_LocalInvocationIndex; i < min(length, columns); i += THREADS) {
    E s = E(0.0);
    for (uint j = 0; j < SLOTS; j++) s += column_sums[j * columns + i];
    PUT_F32(dgain_rows, part * length + i, s)
  }
}
