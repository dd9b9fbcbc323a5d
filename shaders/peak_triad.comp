// peak_triad measures what memory does at most: a = b + s * c, by vectors of four.
//! kernel peak_triad
//! kernel peak_triad_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = THREADS) in;
layout(push_constant) uniform Push {
  uint count; // vectors
  float s;
};

layout(binding = 0) readonly buffer B0 { vec4 b[]; };
layout(binding = 1) readonly buffer B1 { vec4 c[]; };
layout(binding = 2) writeonly buffer B2 { vec4 a[]; };

const uint PER_THREAD = 4;

void main() {
  uint first = group_index() * (THREADS * PER_THREAD) + gl_LocalInvocationIndex;
  [[unroll]] for (uint j = 0; j < PER_THREAD; j++) {
    uint i = first + j * THREADS;
    if (i < count) a[i] = b[i] + s * c[i];
  }
}
