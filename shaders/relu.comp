// relu: y = max(x, 0); a NaN stays.
//! kernel relu
//! kernel relu_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "pointwise.glsl"

layout(binding = 0) readonly buffer B0 { float x[]; };
layout(binding = 1) writeonly buffer B1 { float y[]; };

void main() {
  EACH(i) {
    y[i] = x[i] > 0.0 || is_nan(x[i]) ? x[i] : 0.0;
  }
}
