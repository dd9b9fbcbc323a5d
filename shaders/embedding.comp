// embedding: y[r] = table[tokens[r]], NaN for a token that the table lacks. Words are copied as they are. Of a part of the table it writes
// the rows of y that it has.
//! kernel embedding
//! kernel embedding_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = THREADS) in;
layout(push_constant) uniform Push {
  uint count; // elements of y
  uint dim;
  uint vocab;
  uint first; // row of the table's that is bound, and how many are
  uint rows;
};

layout(binding = 0) readonly buffer B0 { uint table[]; };
layout(binding = 1) readonly buffer B1 { uint tokens[]; };
layout(binding = 2) writeonly buffer B2 { uint y[]; };

void main() {
  uint i = group_index() * THREADS + gl_LocalInvocationIndex;
  if (i >= count) return;
  uint token = tokens[i / dim]; // a negative one is a large number here
  if (token - first < rows)
    y[i] = table[(token - first) * dim + i % dim];
  else if (token >= vocab)
    y[i] = 0x7fc00000u;
}
