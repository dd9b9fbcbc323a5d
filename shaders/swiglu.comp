// swiglu: y = silu(gate) up.
//! kernel swiglu
//! kernel swiglu_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "math.glsl"
#include "pointwise.glsl"

layout(binding = 0) readonly buffer B0 { float gate[]; };
layout(binding = 1) readonly buffer B1 { float up[]; };
layout(binding = 2) writeonly buffer B2 { float y[]; };

void main() {
  EACH(i) {
    y[i] = gate[i] * sigmoids(gate[i]).x * up[i];
  }
}
