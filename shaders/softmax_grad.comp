// softmax_grad: dx = y (dy - sum over the row of dy y).
//! kernel softmax_grad
//! kernel softmax_grad_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "math.glsl"
#include "rows.glsl"

layout(push_constant) uniform Push {
  uint row_count;
  uint n; // elements of a row
};

layout(binding = 0) readonly buffer B0 { float dy[]; };
layout(binding = 1) readonly buffer B1 { float y[]; };
layout(binding = 2) writeonly buffer B2 { float dx[]; };

void main() {
  uint row = group_index() * SLOTS + slot();
  uint end = row < row_count ? n : 0;
  uint at = row * n;
  float s = 0.0;
  for (uint i = lane(); i < end; i += LANES) s += dy[at + i] * y[at + i];
  s = row_sum(s);
  for (uint i = lane(); i < end; i += LANES) dx[at + i] = y[at + i] * (dy[at + i] - s);
}
