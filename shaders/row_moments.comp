// row_moments: the mean and the variance of each row. Deviations are from a shift, the sum over n as it is rounded, and what is left of that is
// taken off again, so that the variance has its digits where the mean is large. All is times a power of two, so that sums are finite where their means are.
//! kernel row_moments
//! kernel row_moments_128 THREADS=128
//! kernel row_moments_narrow NARROW=1
//! kernel row_moments_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 1
#include "common.glsl"
#include "storage.glsl"
#include "rows.glsl"

layout(push_constant) uniform Push {
  uint row_count;
  uint n; // elements of a row
  float inv_n;
};

layout(binding = 0) readonly buffer B0 { WORD x[]; };
layout(binding = 1) writeonly buffer B1 { float mean[]; };
layout(binding = 2) writeonly buffer B2 { float variance[]; };

void main() {
  uint row = group_index() * SLOTS + slot();
  uint end = row < row_count ? n : 0; // lanes without a row still meet the others at the barriers
  uint at = row * n;
  float s = 0.0;
  for (uint i = lane(); i < end; i += LANES) s = max(s, abs(GET1(x, 0, at + i)));
  int e = row_exponent(row_max(s));
  float down = power_of_two(-e), up = power_of_two(e);
  s = 0.0;
  for (uint i = lane(); i < end; i += LANES) s += GET1(x, 0, at + i) * down;
  float shift = row_sum(s) * inv_n;
  vec2 d = vec2(0.0);
  for (uint i = lane(); i < end; i += LANES) {
    float v = GET1(x, 0, at + i) * down - shift;
    d += vec2(v, v * v);
  }
  d = row_sum(d) * inv_n;
  if (lane() != 0 || row >= row_count) return;
  float var = d.y - d.x * d.x;
  if (!is_nan(var) && floatBitsToUint(var) > 0x80000000u) var = 0.0; // a little below it, by rounding
  mean[row] = (shift + d.x) * up;
  variance[row] = var * up * up;
}
