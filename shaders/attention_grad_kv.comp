// The third pass of attention_grad: dk and dv. A group has TILE keys of one key head, and goes over the queries after them of each query head
// that reads it, in order: the sums need no atomics and come out the same every time. Rows of the tiles are keys here, columns queries.
// It sums HELD chunks of the head's elements: two gradients of a long head would take more registers than there are, so that one is split
// among groups, which each recompute the logits.
//! kernel attention_grad_kv_64 TILE=32 HELD=1
//! kernel attention_grad_kv_128 TILE=32 HELD=2
//! kernel attention_grad_kv_64_16 TILE=16 HELD=1
//! kernel attention_grad_kv_128_16 TILE=16 HELD=2
//! kernel attention_grad_kv_64_narrow TILE=32 HELD=1 NARROW=1
//! kernel attention_grad_kv_128_narrow TILE=32 HELD=2 NARROW=1
//! kernel attention_grad_kv_64_narrow_16 TILE=16 HELD=1 NARROW=1
//! kernel attention_grad_kv_128_narrow_16 TILE=16 HELD=2 NARROW=1
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 3
#include "common.glsl"
#include "storage.glsl"
#include "math.glsl"
#include "attention.glsl"

layout(binding = 0) readonly buffer B0 { WORD dout[]; };
layout(binding = 1) readonly buffer B1 { WORD q[]; };
layout(binding = 2) readonly buffer B2 { WORD k[]; };
layout(binding = 3) readonly buffer B3 { WORD v[]; };
layout(binding = 4) readonly buffer B4 { float lse[]; };
layout(binding = 5) readonly buffer B5 { float scale_operand[]; };
layout(binding = 6) readonly buffer B6 { float delta[]; };
layout(binding = 7) writeonly buffer B7 { WORD dk[]; };
layout(binding = 8) writeonly buffer B8 { WORD dv[]; };

shared vec4 probs[TILE * WEIGHTS];
shared vec4 slopes[TILE * WEIGHTS];

const uint PARTS = (HEAD_DIM + HELD * CHUNK - 1) / (HELD * CHUNK); // groups of a tile

// Chunk c of this group. If it is the head's only one, dout is there still.
#define ADD_QUERIES(c) \
  if (HEAD_DIM > CHUNK) { \
    if (c > 0) barrier(); \
    LOAD(right, dout, 0, q_base, stride, query, first_chunk + c) \
    barrier(); \
  } \
  if (col * 4 < WIDTH) ACCUMULATE_KEYS(acc_v[c], probs, diagonal) \
  barrier(); \
  LOAD(right, q, 1, q_base, stride, query, first_chunk + c) \
  barrier(); \
  if (col * 4 < WIDTH) ACCUMULATE_KEYS(acc_k[c], slopes, diagonal)

#define STORE_DK_DV(c) \
  STORE(dk, 4, acc_k[c], vec4(scale), kv_base, kv_stride, first, first_chunk + c) \
  STORE(dv, 5, acc_v[c], vec4(1.0), kv_base, kv_stride, first, first_chunk + c)

void main() {
  if (group_index() >= count * PARTS) return;
  uint group = group_index() / PARTS;
  uint first_chunk = group_index() % PARTS * HELD;
  uint tile = group % tiles; // the longest first
  uint kv_head = group / tiles % kv_heads;
  uint batch = group / tiles / kv_heads;
  uint stride = heads * HEAD_DIM;
  uint kv_stride = kv_heads * HEAD_DIM;
  uint first = tile * TILE;
  uint kv_base = (batch * positions + first) * kv_stride + kv_head * HEAD_DIM;
  float scale = HAS_SCALE ? scale_operand[0] : scale_value;
  uint sharing = heads / kv_heads;

  vec4 acc_k[HELD][4];
  vec4 acc_v[HELD][4];
  [[unroll]] for (uint c = 0; c < HELD; c++)
    [[unroll]] for (uint i = 0; i < 4; i++) acc_k[c][i] = acc_v[c][i] = vec4(0.0);

  [[dont_unroll]] for (uint step = 0; step < sharing * (tiles - tile); step++) {
    uint head = kv_head * sharing + step / (tiles - tile);
    uint query = (tile + step % (tiles - tile)) * TILE;
    bool diagonal = query == first;
    uint q_base = (batch * positions + query) * stride + head * HEAD_DIM;
    uint row_base = (batch * heads + head) * positions + query;
    vec4 s[COLUMNS], dp[COLUMNS];
    [[unroll]] for (uint j = 0; j < COLUMNS; j++) s[j] = dp[j] = vec4(0.0);
    [[dont_unroll]] for (uint c = 0; c * CHUNK < HEAD_DIM; c++) {
      barrier();
      LOAD(left, k, 2, kv_base, kv_stride, first, c)
      LOAD(right, q, 1, q_base, stride, query, c)
      barrier();
      product(s, c);
    }
    [[dont_unroll]] for (uint c = 0; c * CHUNK < HEAD_DIM; c++) {
      barrier();
      LOAD(left, v, 3, kv_base, kv_stride, first, c)
      LOAD(right, dout, 0, q_base, stride, query, c)
      barrier();
      product(dp, c);
    }
    [[unroll]] for (uint j = 0; j < COLUMNS; j++) {
      uint r = col + 16 * j;
      bool there = query + r < positions;
      float row_lse = there ? lse[row_base + r] : 0.0;
      float row_delta = there ? delta[row_base + r] : 0.0;
      vec4 slope;
      vec4 l = soft_cap(s[j] * scale, slope);
      bvec4 seen;
      [[unroll]] for (uint i = 0; i < 4; i++) seen[i] = there && (!diagonal || row4 * 4 + i <= r);
      vec4 p = exp_(l - row_lse);
      probs[r * WEIGHTS + row4] = mix(vec4(0.0), p, seen);
      slopes[r * WEIGHTS + row4] = mix(vec4(0.0), p * (dp[j] - row_delta) * slope, seen);
    }
    barrier();
    { ADD_QUERIES(0) }
#if HELD == 2
    { ADD_QUERIES(1) }
#endif
  }

  { STORE_DK_DV(0) }
#if HELD == 2
  { STORE_DK_DV(1) }
#endif
}
