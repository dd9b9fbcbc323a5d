// soft_cap: y = value tanh(x / value).
//! kernel soft_cap
//! kernel soft_cap_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "math.glsl"
#include "pointwise.glsl"

layout(binding = 0) readonly buffer B0 { float x[]; };
layout(binding = 1) writeonly buffer B1 { float y[]; };

void main() {
  EACH(i) {
    y[i] = value * tanh_(x[i] / value);
  }
}
