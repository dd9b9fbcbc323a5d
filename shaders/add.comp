// add: c = a + b, which may be in place.
//! kernel add
//! kernel add_128 THREADS=128
//! kernel add_narrow NARROW=1
//! kernel add_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 0
#include "common.glsl"
#include "storage.glsl"
#include "pointwise.glsl"

layout(binding = 0) readonly buffer B0 { WORD a[]; };
layout(binding = 1) readonly buffer B1 { WORD b[]; };
layout(binding = 2) buffer B2 { WORD c[]; };

float add(float a, float b) { return a + b; }

void main() {
  EACH(i) {
    PUT(c, 2, i, MAP2(add, GET(a, 0, i), GET(b, 1, i)))
  }
}
