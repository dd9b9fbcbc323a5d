// relu_grad: dx = dy where x > 0; a NaN where x is one.
//! kernel relu_grad
//! kernel relu_grad_128 THREADS=128
//! kernel relu_grad_narrow NARROW=1
//! kernel relu_grad_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 0
#include "common.glsl"
#include "storage.glsl"
#include "pointwise.glsl"

layout(binding = 0) readonly buffer B0 { WORD dy[]; };
layout(binding = 1) readonly buffer B1 { WORD x[]; };
layout(binding = 2) writeonly buffer B2 { WORD dx[]; };

float relu_grad(float dy, float x) { return is_nan(x) ? x : x > 0.0 ? dy : 0.0; }

void main() {
  EACH(i) {
    PUT(dx, 2, i, MAP2(relu_grad, GET(dy, 0, i), GET(x, 1, i)))
  }
}
