// sum_squares_many: sum_squares of many tensors in one dispatch.
//! kernel sum_squares_many
//! kernel sum_squares_many_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "rows.glsl"
#include "sums.glsl"

layout(push_constant) uniform Push {
  uint tensors;
};

layout(binding = 0) readonly buffer B0 { float x[]; };
layout(binding = 1) writeonly buffer B1 { float partials[]; };
layout(binding = 2) readonly buffer B2 { uint table[]; }; // of each tensor: elements, where it and its partial sums begin

const uint SUMS = 64; // of a tensor; SLOTS divides it

#define TERM(i) x[i] * x[i]

void main() {
  uint sum = group_index() * SLOTS + slot();
  uint tensor = sum / SUMS;
  if (tensor >= tensors) return; // the whole group
  uint count = table[3 * tensor];
  uint start = table[3 * tensor + 1];
  uint part = sum % SUMS;
  uint chunk = (count + SUMS - 1) / SUMS;
  uint first = min(part * chunk, count);
  float s;
  ROW_SUM(s, start + first, start + min(first + chunk, count), TERM)
  if (lane() == 0) partials[table[3 * tensor + 2] + part] = s;
}
