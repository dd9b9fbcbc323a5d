// The parts of a matmul's c that matmul_tile computed over parts of the inner dimension, added up in their order: c = addend + the sum.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 128) in;
layout(constant_id = 0) const bool HAS_ADDEND = false;
layout(push_constant) uniform Push {
  uint count; // elements of c
  uint parts;
};

layout(binding = 0) readonly buffer B0 { float x[]; }; // (parts, count)
layout(binding = 1) readonly buffer B1 { float addend[]; };
layout(binding = 2) writeonly buffer B2 { float c[]; };

void main() {
  uint i = group_index() * 128 + gl_LocalInvocationIndex;
  if (i >= count) return;
  float s = x[i];
  [[dont_unroll]] for (uint p = 1; p < parts; p++) s += x[p * count + i];
  if (HAS_ADDEND) s += addend[i];
  c[i] = s;
}
