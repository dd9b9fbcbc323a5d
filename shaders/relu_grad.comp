// relu_grad: dx = dy where x > 0; a NaN where x is one.
//! kernel relu_grad
//! kernel relu_grad_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "pointwise.glsl"

layout(binding = 0) readonly buffer B0 { float dy[]; };
layout(binding = 1) readonly buffer B1 { float x[]; };
layout(binding = 2) writeonly buffer B2 { float dx[]; };

void main() {
  EACH(i) {
    dx[i] = is_nan(x[i]) ? x[i] : x[i] > 0.0 ? dy[i] : 0.0;
  }
}
