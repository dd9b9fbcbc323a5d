// gelu_grad: dx = dy (Φ(x) + x φ(x)).
//! kernel gelu_grad
//! kernel gelu_grad_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "math.glsl"
#include "pointwise.glsl"

layout(binding = 0) readonly buffer B0 { float dy[]; };
layout(binding = 1) readonly buffer B1 { float x[]; };
layout(binding = 2) writeonly buffer B2 { float dx[]; };

void main() {
  EACH(i) {
    float v = x[i];
    float g = gauss(v);
    dx[i] = dy[i] * (normal_cdf(v, g) + v * (0.398942280 * g));
  }
}
