// adamw_many: adamw of many tensors in one dispatch.
//! kernel adamw_many
//! kernel adamw_many_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = THREADS) in;
layout(binding = 0) buffer B0 { float p[]; };
layout(binding = 1) buffer B1 { float m[]; };
layout(binding = 2) buffer B2 { float v[]; };
layout(binding = 3) readonly buffer B3 { float g[]; };
#include "adamw.glsl"
layout(binding = 6) readonly buffer B6 { uint table[]; };

const uint ROW = 7; // of each tensor: its first group, elements, where p, m, v, g begin, decay
const uint PER_THREAD = 4;
#include "many.glsl"

void main() {
  uint group = group_index();
  uint row = row_of(group);
  uint first = (group - table[row]) * (THREADS * PER_THREAD) + gl_LocalInvocationIndex;
  uint count = table[row + 1];
  uint at_p = table[row + 2], at_m = table[row + 3], at_v = table[row + 4], at_g = table[row + 5];
  ADAMW_BEGIN(uintBitsToFloat(table[row + 6]))
  [[dont_unroll]] for (uint j = 0; j < PER_THREAD; j++) {
    uint i = first + j * THREADS;
    if (i < count) { ADAMW(p[at_p + i], m[at_m + i], v[at_v + i], g[at_g + i]) }
  }
}
