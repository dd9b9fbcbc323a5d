// clip_norm: the root of the partials' sum, and the factor that brings it under max_norm. One group.
//! kernel clip_norm
//! kernel clip_norm_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "rows.glsl"
#include "sums.glsl"

layout(push_constant) uniform Push {
  uint count;
  float max_norm; // 0: never clip
};

layout(binding = 0) readonly buffer B0 { float partials[]; };
layout(binding = 1) writeonly buffer B1 { float norm[]; };
layout(binding = 2) writeonly buffer B2 { float factor[]; };

#define TERM(i) partials[i]

void main() {
  float s;
  ROW_SUM(s, 0, count, TERM)
  if (gl_LocalInvocationIndex != 0) return;
  float l = sqrt(s);
  norm[0] = l;
  factor[0] = max_norm == 0.0 || l + 1e-6 <= max_norm ? 1.0 : max_norm / (l + 1e-6);
}
