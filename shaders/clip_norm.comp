// clip_norm: the root of the partials' sum, and the factor that brings it under max_norm, both over the scale of the loss; the factor is 0 for a
// norm that is not finite. One group.
//! kernel clip_norm
//! kernel clip_norm_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "rows.glsl"
#include "sums.glsl"

layout(constant_id = 1) const bool HAS_SCALE = false;
layout(push_constant) uniform Push {
  uint count;
  float max_norm; // 0: never clip
};

layout(binding = 0) readonly buffer B0 { float partials[]; };
layout(binding = 1) readonly buffer B1 { float scale[]; };
layout(binding = 2) writeonly buffer B2 { float norm[]; };
layout(binding = 3) writeonly buffer B3 { float factor[]; };

#define TERM(i) partials[i]

void main() {
  float s;
  ROW_SUM(s, 0, count, TERM)
  if (gl_LocalInvocationIndex != 0) return;
  float l = sqrt(s);
  if (HAS_SCALE) l /= scale[0];
  norm[0] = l;
  float f = max_norm == 0.0 || l + 1e-6 <= max_norm ? 1.0 : max_norm / (l + 1e-6);
  if (HAS_SCALE) f /= scale[0];
  factor[0] = is_finite(l) ? f : 0.0;
}
