// soft_cap_grad: dx = dy (1 - (y / value)²).
//! kernel soft_cap_grad
//! kernel soft_cap_grad_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "pointwise.glsl"

layout(binding = 0) readonly buffer B0 { float dy[]; };
layout(binding = 1) readonly buffer B1 { float y[]; };
layout(binding = 2) writeonly buffer B2 { float dx[]; };

void main() {
  EACH(i) {
    float t = y[i] / value;
    dx[i] = dy[i] * ((1.0 - t) * (1.0 + t));
  }
}
