// sum: y = scale sum(x); without HAS_SCALE, sum(x). One group.
//! kernel sum
//! kernel sum_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "rows.glsl"
#include "sums.glsl"

layout(constant_id = 1) const bool HAS_SCALE = false;
layout(push_constant) uniform Push { uint count; };

layout(binding = 0) readonly buffer B0 { float x[]; };
layout(binding = 1) readonly buffer B1 { float scale[]; };
layout(binding = 2) writeonly buffer B2 { float y[]; };

#define TERM(i) x[i]

void main() {
  float s;
  ROW_SUM(s, 0, count, TERM)
  if (HAS_SCALE) s *= scale[0];
  if (gl_LocalInvocationIndex == 0) y[0] = s;
}
