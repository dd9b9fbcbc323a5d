// soft_cap_grad: dx = dy (1 - (y / value)²).
//! kernel soft_cap_grad
//! kernel soft_cap_grad_128 THREADS=128
//! kernel soft_cap_grad_narrow NARROW=1
//! kernel soft_cap_grad_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 0
#include "common.glsl"
#include "storage.glsl"
#include "pointwise.glsl"

layout(binding = 0) readonly buffer B0 { WORD dy[]; };
layout(binding = 1) readonly buffer B1 { WORD y[]; };
layout(binding = 2) writeonly buffer B2 { WORD dx[]; };

float soft_cap_grad(float dy, float y) {
  float t = y / value;
  return dy * ((1.0 - t) * (1.0 + t));
}

void main() {
  EACH(i) {
    PUT(dx, 2, i, MAP2(soft_cap_grad, GET(dy, 0, i), GET(y, 1, i)))
  }
}
