// embedding_grad: dtable[v] = addend[v] + sum over r with tokens[r] == v of dy[r], in the order of the rows.
//
// A group owns `rows` rows of the table and THREADS columns. It reads the tokens a block at a time, marks which of its rows each one
// hits, and adds those rows of dy: each element of the table is only ever touched by one thread, so no atomics on floats are needed.
//! kernel embedding_grad
//! kernel embedding_grad_128 THREADS=128
//! kernel embedding_grad_narrow NARROW=1
//! kernel embedding_grad_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 1
#include "common.glsl"
#include "storage.glsl"

layout(local_size_x = THREADS) in;
layout(constant_id = 0) const bool HAS_ADDEND = false; // the addend is dtable itself
layout(push_constant) uniform Push {
  uint tokens_count;
  uint dim;
  uint vocab; // rows of dtable
  uint base; // token of the first of them
  uint rows; // of the table, a group; at most 16
  uint column_blocks;
};

layout(binding = 0) readonly buffer B0 { uint tokens[]; };
layout(binding = 1) readonly buffer B1 { WORD dy[]; };
layout(binding = 2) buffer B2 { float dtable[]; };

const uint MAX_ROWS = 16;
const uint WORDS = THREADS / 32; // of 32 tokens: a block is THREADS tokens

shared uint hits[MAX_ROWS * WORDS];
shared uint touched; // a bit for each row that the block hits

void main() {
  uint tid = gl_LocalInvocationIndex;
  uint first = group_index() / column_blocks * rows;
  uint column = group_index() % column_blocks * THREADS + tid;
  if (first >= vocab) return;
  uint count = min(rows, vocab - first);
  if (!HAS_ADDEND && column < dim)
    for (uint v = 0; v < count; v++) dtable[(first + v) * dim + column] = 0.0;

  for (uint block = 0; block < tokens_count; block += THREADS) {
    barrier();
    if (tid < MAX_ROWS * WORDS) hits[tid] = 0u;
    if (tid == 0) touched = 0u;
    barrier();
    if (block + tid < tokens_count) {
      uint row = tokens[block + tid] - base - first; // wraps round to a large number below first
      if (row < count) {
        atomicOr(hits[row * WORDS + tid / 32], 1u << (tid % 32));
        atomicOr(touched, 1u << row);
      }
    }
    barrier();
    uint left = column < dim ? touched : 0u;
    for (; left != 0u; left &= left - 1u) {
      uint row = uint(findLSB(left));
      uint at = (first + row) * dim + column;
      float sum = dtable[at];
      for (uint w = 0; w < WORDS; w++)
        for (uint bits = hits[row * WORDS + w]; bits != 0u; bits &= bits - 1u)
          sum += GET1(dy, 0, (block + w * 32 + uint(findLSB(bits))) * dim + column);
      dtable[at] = sum;
    }
  }
}
