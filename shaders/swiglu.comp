// swiglu: y = silu(gate) up.
//! kernel swiglu
//! kernel swiglu_128 THREADS=128
//! kernel swiglu_narrow NARROW=1
//! kernel swiglu_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 0
#include "common.glsl"
#include "storage.glsl"
#include "math.glsl"
#include "pointwise.glsl"

layout(binding = 0) readonly buffer B0 { WORD gate[]; };
layout(binding = 1) readonly buffer B1 { WORD up[]; };
layout(binding = 2) writeonly buffer B2 { WORD y[]; };

float swiglu(float gate, float up) { return gate * sigmoids(gate).x * up; }

void main() {
  EACH(i) {
    PUT(y, 2, i, MAP2(swiglu, GET(gate, 0, i), GET(up, 1, i)))
  }
}
