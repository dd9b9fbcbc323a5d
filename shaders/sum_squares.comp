// sum_squares: a group sums the squares of each of the 64 chunks.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "rows.glsl"
#include "sums.glsl"

layout(push_constant) uniform Push {
  uint count;
  uint chunk; // elements of one
};

layout(binding = 0) readonly buffer B0 { float x[]; };
layout(binding = 1) writeonly buffer B1 { float partials[]; };

#define TERM(i) x[i] * x[i]

void main() {
  uint part = gl_WorkGroupID.x;
  uint first = min(part * chunk, count);
  float s;
  GROUP_SUM(s, first, min(first + chunk, count), TERM)
  if (gl_LocalInvocationIndex == 0) partials[part] = s;
}
