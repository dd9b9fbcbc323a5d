// token_order: order[p] is the row of the token that is number p by value, equal ones by their rows. A thread counts the tokens before its own.
//! kernel token_order
//! kernel token_order_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = THREADS) in;
layout(push_constant) uniform Push {
  uint tokens_count;
};

layout(binding = 0) readonly buffer B0 { uint tokens[]; };
layout(binding = 1) writeonly buffer B1 { uint order[]; };

shared uvec4 block[THREADS / 4];

const uint LARGEST = 0x7fffffffu; // no token of a table, so that what is no token at all may count as it

void main() {
  uint tid = gl_LocalInvocationIndex;
  uint row = group_index() * THREADS + tid;
  uint token = row < tokens_count ? min(tokens[row], LARGEST) : 0;
  uvec4 rank = uvec4(0);
  [[dont_unroll]] for (uint base = 0; base < tokens_count; base += THREADS) {
    barrier();
    block[tid / 4][tid % 4] = base + tid < tokens_count ? min(tokens[base + tid], LARGEST) : 0xffffffffu;
    barrier();
    [[dont_unroll]] for (uint j = 0; j < THREADS / 4; j++) {
      uvec4 rows = base + 4 * j + uvec4(0, 1, 2, 3);
      rank += uvec4(lessThan(block[j], token + uvec4(lessThan(rows, uvec4(row)))));
    }
  }
  if (row < tokens_count) order[rank.x + rank.y + rank.z + rank.w] = row;
}
