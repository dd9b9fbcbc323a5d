// fill: y = value.
//! kernel fill
//! kernel fill_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "pointwise.glsl"

layout(binding = 0) writeonly buffer B0 { float y[]; };

void main() {
  EACH(i) {
    y[i] = value;
  }
}
