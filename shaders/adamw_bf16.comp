// adamw_bf16: adamw of a parameter in bf16, which is rounded to nearest even or stochastically.
//! kernel adamw_bf16
//! kernel adamw_bf16_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = THREADS) in;
layout(push_constant) uniform Push {
  uint count; // elements
  float decay;
  uint tensor; // the upper half of the number of a block
  uint block; // the lower half, of the first
};
#include "adamw_bf16.glsl"

void main() {
  uint thread = group_index() * THREADS + gl_LocalInvocationIndex;
  update(thread, count, uvec4(0u), decay, uvec2(block + thread, tensor));
}
