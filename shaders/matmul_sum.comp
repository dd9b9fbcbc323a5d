// The parts of a matmul's c over parts of the inner dimension, added up in their order: c = addend + the sum, rounded to c's format.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "formats.glsl"

layout(local_size_x = 128) in;
layout(constant_id = 0) const uint ADDEND = NONE; // its format
layout(constant_id = 1) const uint OUT = F32; // c's
layout(push_constant) uniform Push {
  uint count; // elements of c
  uint parts;
};

layout(binding = 0) readonly buffer B0 { float x[]; }; // (parts, count)
layout(binding = 1) readonly buffer B1 { uint addend[]; };
layout(binding = 2) writeonly buffer B2 { uint c[]; };

uint sum(uint i) {
  float s = x[i];
  [[dont_unroll]] for (uint p = 1; p < parts; p++) s += x[p * count + i];
  if (ADDEND != NONE) s += ELEMENT_AT(addend, i, ADDEND);
  return floatBitsToUint(s);
}

void main() {
  uint i = group_index() * 128 + gl_LocalInvocationIndex;
  if (OUT == F32) {
    if (i < count) c[i] = sum(i);
  } else if (2 * i < count) { // a word
    uint low = sum(2 * i);
    uint high = 2 * i + 1 < count ? sum(2 * i + 1) : 0u;
    c[i] = narrow(low, OUT) | narrow(high, OUT) << 16;
  }
}
