// swiglu_grad: dgate = dy up σ (1 + gate (1 - σ)), dup = dy gate σ.
//! kernel swiglu_grad
//! kernel swiglu_grad_128 THREADS=128
//! kernel swiglu_grad_narrow NARROW=1
//! kernel swiglu_grad_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 0
#include "common.glsl"
#include "storage.glsl"
#include "math.glsl"
#include "pointwise.glsl"

layout(binding = 0) readonly buffer B0 { WORD dy[]; };
layout(binding = 1) readonly buffer B1 { WORD gate[]; };
layout(binding = 2) readonly buffer B2 { WORD up[]; };
layout(binding = 3) writeonly buffer B3 { WORD dgate[]; };
layout(binding = 4) writeonly buffer B4 { WORD dup[]; };

float to_gate(float dy, float gate, float up) {
  vec2 s = sigmoids(gate);
  return dy * up * s.x * (1.0 + gate * s.y);
}
float to_up(float dy, float gate) { return dy * gate * sigmoids(gate).x; }

void main() {
  EACH(i) {
    E d = GET(dy, 0, i); // all is read before it is written: an output may have an input's place
    E g = GET(gate, 1, i);
    E u = GET(up, 2, i);
    PUT(dgate, 3, i, MAP3(to_gate, d, g, u))
    PUT(dup, 4, i, MAP2(to_up, d, g))
  }
}
