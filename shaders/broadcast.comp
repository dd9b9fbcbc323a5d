// broadcast: y = x[0] scale[0] in each element; without HAS_SCALE, x[0].
//! kernel broadcast
//! kernel broadcast_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "pointwise.glsl"

layout(constant_id = 0) const bool HAS_SCALE = false;

layout(binding = 0) readonly buffer B0 { float x[]; };
layout(binding = 1) readonly buffer B1 { float scale[]; };
layout(binding = 2) writeonly buffer B2 { float y[]; };

void main() {
  float v = x[0];
  if (HAS_SCALE) v *= scale[0];
  EACH(i) y[i] = v;
}
