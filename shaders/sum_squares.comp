// sum_squares: the sums of the squares of 64 chunks, each spread over lanes like a row.
//! kernel sum_squares
//! kernel sum_squares_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "rows.glsl"
#include "sums.glsl"

layout(push_constant) uniform Push {
  uint count;
  uint chunk; // elements of one
};

layout(binding = 0) readonly buffer B0 { float x[]; };
layout(binding = 1) writeonly buffer B1 { float partials[]; };

#define TERM(i) x[i] * x[i]

void main() {
  uint part = gl_WorkGroupID.x * SLOTS + slot(); // SLOTS divides 64
  uint first = min(part * chunk, count);
  float s;
  ROW_SUM(s, first, min(first + chunk, count), TERM)
  if (lane() == 0) partials[part] = s;
}
