// sum_squares: the sums of the squares of 64 chunks, or of some of them, each spread over lanes like a row.
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
  uint first; // chunk
  uint end; // the chunk after the last
  uint base; // element of the tensor that x begins with
};

layout(binding = 0) readonly buffer B0 { float x[]; };
layout(binding = 1) writeonly buffer B1 { float partials[]; };

#define TERM(i) x[i] * x[i]

void main() {
  uint part = first + gl_WorkGroupID.x * SLOTS + slot(); // the last group may have some that are not asked for
  uint from = min(part * chunk, count), to = part < end ? min(from + chunk, count) : from;
  float s;
  ROW_SUM(s, from - base, to - base, TERM)
  if (lane() == 0 && part < end) partials[part] = s;
}
