// sum_rows: y = addend + the sum over the rows, in their order. A thread a column.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const bool HAS_ADDEND = false;
layout(push_constant) uniform Push {
  uint row_count;
  uint n; // elements of a row
};

layout(binding = 0) readonly buffer B0 { float x[]; };
layout(binding = 1) readonly buffer B1 { float addend[]; };
layout(binding = 2) writeonly buffer B2 { float y[]; };

void main() {
  uint i = group_index() * 64 + gl_LocalInvocationIndex;
  if (i >= n) return;
  float s = 0.0;
  for (uint r = 0; r < row_count; r++) s += x[r * n + i];
  if (HAS_ADDEND) s += addend[i];
  y[i] = s;
}
