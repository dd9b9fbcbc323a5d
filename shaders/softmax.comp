// softmax of each row.
//! kernel softmax
//! kernel softmax_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "math.glsl"
#include "rows.glsl"
#include "online.glsl"

layout(push_constant) uniform Push {
  uint row_count;
  uint n; // elements of a row
};

layout(binding = 0) readonly buffer B0 { float x[]; };
layout(binding = 1) writeonly buffer B1 { float y[]; };

void main() {
  uint row = group_index() * SLOTS + slot();
  uint end = row < row_count ? n : 0;
  uint at = row * n;
  vec2 a = NOTHING;
  for (uint i = lane(); i < end; i += LANES) a = online_add(a, x[at + i]);
  a = row_merge(a);
  float inv = 1.0 / a.y;
  for (uint i = lane(); i < end; i += LANES) y[at + i] = exp_(x[at + i] - a.x) * inv;
}
