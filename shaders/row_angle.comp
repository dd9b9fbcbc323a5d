// row_angle: the angle between rows over pi, 2/pi atan2(|x/|x| - y/|y||, |x/|x| + y/|y||), which is right near 0 where an arccosine is not.
//! kernel row_angle
//! kernel row_angle_128 THREADS=128
//! kernel row_angle_narrow NARROW=1
//! kernel row_angle_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 1
#include "common.glsl"
#include "storage.glsl"
#include "math.glsl"
#include "rows.glsl"

layout(push_constant) uniform Push {
  uint row_count;
  uint n; // elements of a row
};

layout(binding = 0) readonly buffer B0 { WORD x[]; };
layout(binding = 1) readonly buffer B1 { WORD y[]; };
layout(binding = 2) writeonly buffer B2 { float angle[]; };

// 1/|x| from |x|², 0 for a row of zeros, NaN for one that is not finite.
float scale(float square) {
  if (!is_finite(square)) return uintBitsToFloat(0x7fc00000u);
  return square > 0.0 ? rsqrt_(square) : 0.0;
}

// 2/pi atan t for t from 0 to 1. The polynomial, for up to tan(pi/8), is a minimax fit with a relative error of 3e-9.
float atan_over_quarter_turn(float t) {
  bool far = t > 0.41421356;
  if (far) t = (t - 1.0) / (t + 1.0); // atan t - pi/4
  float z = t * t;
  float p = -0.0645192787;
  p = p * z + 0.107437313;
  p = p * z - 0.142639562;
  p = p * z + 0.199995399;
  p = p * z - 0.333333313;
  return (far ? 0.5 : 0.0) + 0.636619772 * (t + t * z * p);
}

void main() {
  uint row = group_index() * SLOTS + slot();
  uint end = row < row_count ? n : 0; // lanes without a row still meet the others at the barriers
  uint at = row * n;
  vec2 s = vec2(0.0);
  for (uint i = lane(); i < end; i += LANES) s = max(s, abs(vec2(GET1(x, 0, at + i), GET1(y, 1, at + i))));
  s = row_max(s);
  vec2 down = vec2(power_of_two(-row_exponent(s.x)), power_of_two(-row_exponent(s.y)));
  s = vec2(0.0);
  for (uint i = lane(); i < end; i += LANES) {
    vec2 v = vec2(GET1(x, 0, at + i), GET1(y, 1, at + i)) * down;
    s += v * v;
  }
  s = row_sum(s);
  vec2 r = vec2(scale(s.x), scale(s.y));
  s = vec2(0.0); // of the difference, and of the sum
  for (uint i = lane(); i < end; i += LANES) {
    vec2 v = vec2(GET1(x, 0, at + i), GET1(y, 1, at + i)) * down * r;
    vec2 d = vec2(v.x - v.y, v.x + v.y);
    s += d * d;
  }
  s = row_sum(s);
  if (lane() != 0 || row >= row_count) return;
  vec2 side = sqrt(s);
  float a = side.x > side.y ? 1.0 - atan_over_quarter_turn(side.y / side.x) : atan_over_quarter_turn(side.x / side.y);
  angle[row] = side.x + side.y == 0.0 ? 0.5 : a;
}
