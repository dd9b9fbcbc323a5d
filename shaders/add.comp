// add: c = a + b, which may be in place.
//! kernel add
//! kernel add_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "pointwise.glsl"

layout(binding = 0) readonly buffer B0 { float a[]; };
layout(binding = 1) readonly buffer B1 { float b[]; };
layout(binding = 2) buffer B2 { float c[]; };

void main() {
  EACH(i) {
    c[i] = a[i] + b[i];
  }
}
