// embedding: y[r] = table[tokens[r]], NaN for a token that the table lacks. Of a part of the table it writes
// the rows of y that it has.
//! kernel embedding
//! kernel embedding_128 THREADS=128
//! kernel embedding_narrow NARROW=1
//! kernel embedding_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 0
#include "common.glsl"
#include "storage.glsl"

layout(local_size_x = THREADS) in;
layout(push_constant) uniform Push {
  uint count; // elements of y
  uint dim;
  uint vocab;
  uint first; // row of the table's that is bound, and how many are
  uint rows;
};

layout(binding = 0) readonly buffer B0 { WORD table[]; };
layout(binding = 1) readonly buffer B1 { uint tokens[]; };
layout(binding = 2) writeonly buffer B2 { WORD y[]; };

void main() {
  uint i = group_index() * THREADS + gl_LocalInvocationIndex;
  if (i >= count / PER_E) return;
  uint length = dim / PER_E;
  uint token = tokens[i / length]; // a negative one is a large number here
  if (token - first < rows) {
    E v = GET(table, 0, (token - first) * length + i % length);
    PUT(y, 1, i, v)
  } else if (token >= vocab) {
    PUT(y, 1, i, E(uintBitsToFloat(0x7fc00000u)))
  }
}
