// fill: y = value.
//! kernel fill
//! kernel fill_128 THREADS=128
//! kernel fill_narrow NARROW=1
//! kernel fill_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 0
#include "common.glsl"
#include "storage.glsl"
#include "pointwise.glsl"

layout(binding = 0) writeonly buffer B0 { WORD y[]; };

void main() {
  EACH(i) {
    PUT(y, 0, i, E(value))
  }
}
