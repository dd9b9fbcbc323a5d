// gelu_grad: dx = dy (Φ(x) + x φ(x)).
//! kernel gelu_grad
//! kernel gelu_grad_128 THREADS=128
//! kernel gelu_grad_narrow NARROW=1
//! kernel gelu_grad_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 0
#include "common.glsl"
#include "storage.glsl"
#include "math.glsl"
#include "pointwise.glsl"

layout(binding = 0) readonly buffer B0 { WORD dy[]; };
layout(binding = 1) readonly buffer B1 { WORD x[]; };
layout(binding = 2) writeonly buffer B2 { WORD dx[]; };

float gelu_grad(float dy, float x) {
  float g = gauss(x);
  return dy * (normal_cdf(x, g) + x * (0.398942280 * g));
}

void main() {
  EACH(i) {
    PUT(dx, 2, i, MAP2(gelu_grad, GET(dy, 0, i), GET(x, 1, i)))
  }
}
