// gelu: y = x Φ(x).
//! kernel gelu
//! kernel gelu_128 THREADS=128
//! kernel gelu_narrow NARROW=1
//! kernel gelu_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 0
#include "common.glsl"
#include "storage.glsl"
#include "math.glsl"
#include "pointwise.glsl"

layout(binding = 0) readonly buffer B0 { WORD x[]; };
layout(binding = 1) writeonly buffer B1 { WORD y[]; };

float gelu(float x) { return x * normal_cdf(x, gauss(x)); }

void main() {
  EACH(i) {
    PUT(y, 1, i, MAP1(gelu, GET(x, 0, i)))
  }
}
