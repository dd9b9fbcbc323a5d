// The gradients of rms_norm and layer_norm: with r the reciprocal root, x̂ the normalised row and u = dy gain,
// dx = addend + r (u - mean(u) - x̂ mean(u x̂)), without mean(u) unless CENTERED; and, with a gain, dgain_rows[part] = sum of dy x̂.
//
// A group takes `span` consecutive rows, SLOTS at a time: with a gain they are one part of dgain_rows.
//! kernel norm_grad
//! kernel norm_grad_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
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

layout(binding = 0) readonly buffer B0 { float dy[]; };
layout(binding = 1) readonly buffer B1 { float x[]; };
layout(binding = 2) readonly buffer B2 { float gain[]; };
layout(binding = 3) readonly buffer B3 { float addend[]; };
layout(binding = 4) writeonly buffer B4 { float dx[]; };
layout(binding = 5) buffer B5 { float dgain_rows[]; };

// The first KEPT columns of a lane are summed in registers, those after it (of rows so long that a group has one slot) in dgain_rows.
const uint KEPT = 8;

shared float column_sums[KEPT * THREADS]; // the kept columns of each slot

void main() {
  uint part = group_index();
  uint first = part * span;
  if (first >= row_count) return;
  uint last = min(first + span, row_count);
  float sums[KEPT];
  [[unroll]] for (uint k = 0; k < KEPT; k++) sums[k] = 0.0;
  if (HAS_GAIN)
    for (uint i = KEPT * LANES + lane(); i < n; i += LANES) dgain_rows[part * n + i] = 0.0;

  for (uint base = first; base < last; base += SLOTS) {
    uint row = base + slot();
    uint end = row < last ? n : 0;
    uint at = row * n;
    float mean = 0.0;
    if (CENTERED) {
      float s = 0.0;
      for (uint i = lane(); i < end; i += LANES) s += x[at + i];
      mean = row_sum(s) * inv_n;
    }
    float square = 0.0;
    for (uint i = lane(); i < end; i += LANES) {
      float v = x[at + i] - mean;
      square += v * v;
    }
    float r = rsqrt_(row_sum(square) * inv_n + eps);
    vec2 s = vec2(0.0); // of u and of u x̂
    for (uint i = lane(); i < end; i += LANES) {
      float u = dy[at + i];
      if (HAS_GAIN) u *= gain[i];
      s += vec2(u, u * ((x[at + i] - mean) * r));
    }
    vec2 m = row_sum(s) * inv_n;
    if (!CENTERED) m.x = 0.0;
    for (uint i = lane(); i < end; i += LANES) {
      float u = dy[at + i];
      if (HAS_GAIN) u *= gain[i];
      float v = r * (u - m.x - (x[at + i] - mean) * r * m.y);
      if (HAS_ADDEND) v += addend[at + i];
      dx[at + i] = v;
    }
    if (HAS_GAIN) {
      [[unroll]] for (uint k = 0; k < KEPT; k++) {
        uint i = k * LANES + lane();
        if (i < end) sums[k] += dy[at + i] * ((x[at + i] - mean) * r);
      }
      for (uint i = KEPT * LANES + lane(); i < end; i += LANES)
        dgain_rows[part * n + i] += dy[at + i] * ((x[at + i] - mean) * r);
    }
  }

  if (!HAS_GAIN) return;
  const uint columns = KEPT * LANES;
  [[unroll]] for (uint k = 0; k < KEPT; k++) column_sums[slot() * columns + k * LANES + lane()] = sums[k];
  barrier();
  for (uint i = gl_LocalInvocationIndex; i < min(n, columns); i += THREADS) {
    float s = 0.0;
    for (uint j = 0; j < SLOTS; j++) s += column_sums[j * columns + i];
    dgain_rows[part * n + i] = s;
  }
}
