// embedding_grad: dtable[v] = addend[v] + sum over r with tokens[r] == v of dy[r], in the order of the rows, for the tokens v that there are; the
// other rows of dtable stay as they are.
//
// The rows of a token are a segment of the order that token_order gives. The threads at its first row add them up, each a column: no
// atomics on floats are needed, and the work does not depend on the size of the table.
//! kernel embedding_grad
//! kernel embedding_grad_128 THREADS=128
//! kernel embedding_grad_narrow NARROW=1
//! kernel embedding_grad_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 2
#include "common.glsl"
#include "storage.glsl"

layout(local_size_x = THREADS) in;
layout(constant_id = 0) const bool HAS_ADDEND = false; // the addend is dtable itself
layout(constant_id = 1) const uint LANES = THREADS; // columns of a group, a power of two
layout(push_constant) uniform Push {
  uint tokens_count;
  uint dim;
  uint vocab; // rows of dtable
  uint base; // token of the first of them
  uint column_blocks;
};

layout(binding = 0) readonly buffer B0 { uint tokens[]; };
layout(binding = 1) readonly buffer B1 { uint order[]; };
layout(binding = 2) readonly buffer B2 { WORD dy[]; };
layout(binding = 3) buffer B3 { float dtable[]; };

void main() {
  uint p = group_index() / column_blocks * (THREADS / LANES) + gl_LocalInvocationIndex / LANES;
  uint column = group_index() % column_blocks * LANES + gl_LocalInvocationIndex % LANES;
  if (p >= tokens_count || column >= dim) return;
  uint token = tokens[order[p]];
  uint row = token - base; // wraps round to a large number below base
  if (row >= vocab || p > 0 && tokens[order[p - 1]] == token) return;
  uint at = row * dim + column;
  float sum = HAS_ADDEND ? dtable[at] : 0.0;
  [[dont_unroll]] for (; p < tokens_count; p++) {
    uint r = order[p];
    if (tokens[r] != token) break;
    sum += GET1(dy, 0, r * dim + column);
  }
  dtable[at] = sum;
}
