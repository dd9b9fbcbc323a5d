// adamw: one pass over a parameter and its moments, in place.
//! kernel adamw
//! kernel adamw_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "pointwise.glsl"

layout(binding = 0) buffer B0 { float p[]; };
layout(binding = 1) buffer B1 { float m[]; };
layout(binding = 2) buffer B2 { float v[]; };
layout(binding = 3) readonly buffer B3 { float g[]; };
#include "adamw.glsl"

void main() {
  ADAMW_BEGIN(value)
  EACH(i) { ADAMW(p[i], m[i], v[i], g[i]) }
}
