// adamw_bf16_many: adamw_bf16 of many tensors in one dispatch.
//! kernel adamw_bf16_many
//! kernel adamw_bf16_many_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = THREADS) in;
#include "adamw_bf16.glsl"
layout(binding = 7) readonly buffer B7 { uint table[]; };

const uint ROW = 9; // of each tensor: its first group, elements, where p (in words), m, v, g begin, decay, the upper and the lower half of the number of its first block
#include "many.glsl"

void main() {
  uint group = group_index();
  uint row = row_of(group);
  uint thread = (group - table[row]) * THREADS + gl_LocalInvocationIndex;
  uvec4 at = uvec4(table[row + 2], table[row + 3], table[row + 4], table[row + 5]);
  update(thread, table[row + 1], at, uintBitsToFloat(table[row + 6]), uvec2(table[row + 8] + thread, table[row + 7]));
}
