// relu: y = max(x, 0); a NaN stays.
//! kernel relu
//! kernel relu_128 THREADS=128
//! kernel relu_narrow NARROW=1
//! kernel relu_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 0
#include "common.glsl"
#include "storage.glsl"
#include "pointwise.glsl"

layout(binding = 0) readonly buffer B0 { WORD x[]; };
layout(binding = 1) writeonly buffer B1 { WORD y[]; };

float relu(float x) { return x > 0.0 || is_nan(x) ? x : 0.0; }

void main() {
  EACH(i) {
    PUT(y, 1, i, MAP1(relu, GET(x, 0, i)))
  }
}
