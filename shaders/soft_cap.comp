// soft_cap: y = value tanh(x / value).
//! kernel soft_cap
//! kernel soft_cap_128 THREADS=128
//! kernel soft_cap_narrow NARROW=1
//! kernel soft_cap_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 0
#include "common.glsl"
#include "storage.glsl"
#include "math.glsl"
#include "pointwise.glsl"

layout(binding = 0) readonly buffer B0 { WORD x[]; };
layout(binding = 1) writeonly buffer B1 { WORD y[]; };

float soft_cap(float x) { return value * tanh_(x / value); }

void main() {
  EACH(i) {
    PUT(y, 1, i, MAP1(soft_cap, GET(x, 0, i)))
  }
}
