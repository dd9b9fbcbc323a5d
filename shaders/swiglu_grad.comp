// swiglu_grad: dgate = dy up σ (1 + gate (1 - σ)), dup = dy gate σ.
//! kernel swiglu_grad
//! kernel swiglu_grad_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "math.glsl"
#include "pointwise.glsl"

layout(binding = 0) readonly buffer B0 { float dy[]; };
layout(binding = 1) readonly buffer B1 { float gate[]; };
layout(binding = 2) readonly buffer B2 { float up[]; };
layout(binding = 3) writeonly buffer B3 { float dgate[]; };
layout(binding = 4) writeonly buffer B4 { float dup[]; };

void main() {
  EACH(i) {
    float g = gate[i];
    float d = dy[i];
    vec2 s = sigmoids(g);
    dgate[i] = d * up[i] * s.x * (1.0 + g * s.y);
    dup[i] = d * g * s.x;
  }
}
