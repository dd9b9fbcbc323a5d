// The second pass of attention_grad: dq, and each row's gradient of the scale. A group has TILE queries of one head and goes over its keys.
//! kernel attention_grad_q TILE=32
//! kernel attention_grad_q_16 TILE=16
//! kernel attention_grad_q_narrow TILE=32 NARROW=1
//! kernel attention_grad_q_narrow_16 TILE=16 NARROW=1
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
layout(binding = 7) writeonly buffer B7 { WORD dq[]; };
layout(binding = 8) writeonly buffer B8 { float dscale_rows[]; };

shared vec4 weights[TILE * WEIGHTS];

// With one chunk, k is there still.
#define ADD_KEYS(c) \
  if (HEAD_DIM > CHUNK) { \
    if (c > 0) barrier(); \
    LOAD(right, k, 2, key_base, kv_stride, key, c) \
    barrier(); \
  } \
  if (col * 4 < WIDTH) ACCUMULATE_QUERIES(acc[c], weights, diagonal)

#define STORE_DQ(c) STORE(dq, 4, acc[c], vec4(scale), q_base, stride, first, c)

void main() {
  uint group = group_index();
  if (group >= count) return;
  uint tile = tiles - 1 - group % tiles;
  uint head = group / tiles % heads;
  uint batch = group / tiles / heads;
  uint stride = heads * HEAD_DIM;
  uint kv_stride = kv_heads * HEAD_DIM;
  uint first = tile * TILE;
  uint q_base = (batch * positions + first) * stride + head * HEAD_DIM;
  uint kv_base = batch * positions * kv_stride + head / (heads / kv_heads) * HEAD_DIM;
  uint row_base = (batch * heads + head) * positions + first;
  float scale = HAS_SCALE ? scale_operand[0] : scale_value;

  vec4 lse4 = vec4(0.0);
  vec4 delta4 = vec4(0.0);
  [[unroll]] for (uint i = 0; i < 4; i++)
    if (first + row4 * 4 + i < positions) {
      lse4[i] = lse[row_base + row4 * 4 + i];
      delta4[i] = delta[row_base + row4 * 4 + i];
    }
  vec4 acc[CHUNKS][4];
  [[unroll]] for (uint c = 0; c < CHUNKS; c++)
    [[unroll]] for (uint i = 0; i < 4; i++) acc[c][i] = vec4(0.0);
  vec4 dscale = vec4(0.0);

  [[dont_unroll]] for (uint key = 0; key <= first; key += TILE) {
    bool diagonal = key == first;
    uint key_base = kv_base + key * kv_stride;
    vec4 dp[COLUMNS], s[COLUMNS];
    [[unroll]] for (uint j = 0; j < COLUMNS; j++) dp[j] = s[j] = vec4(0.0);
    [[dont_unroll]] for (uint c = 0; c * CHUNK < HEAD_DIM; c++) {
      barrier();
      LOAD(left, dout, 0, q_base, stride, first, c)
      LOAD(right, v, 3, key_base, kv_stride, key, c)
      barrier();
      product(dp, c);
    }
    [[dont_unroll]] for (uint c = 0; c * CHUNK < HEAD_DIM; c++) {
      barrier();
      LOAD(left, q, 1, q_base, stride, first, c)
      LOAD(right, k, 2, key_base, kv_stride, key, c)
      barrier();
      product(s, c);
    }
    [[unroll]] for (uint j = 0; j < COLUMNS; j++) {
      vec4 slope;
      vec4 l = soft_cap(s[j] * scale, slope);
      bvec4 seen;
      [[unroll]] for (uint i = 0; i < 4; i++) seen[i] = !diagonal || col + 16 * j <= row4 * 4 + i;
      vec4 ds = mix(vec4(0.0), exp_(l - lse4) * (dp[j] - delta4) * slope, seen);
      dscale += mix(vec4(0.0), ds * s[j], seen);
      weights[(col + 16 * j) * WEIGHTS + row4] = ds;
    }
    barrier();
    EACH_CHUNK(ADD_KEYS)
  }

  EACH_CHUNK(STORE_DQ)
  if (HAS_SCALE) {
    barrier();
    left[tid] = dscale;
    barrier();
    if (col == 0) {
      vec4 sum = vec4(0.0);
      for (uint l = 0; l < 16; l++) sum += left[tid + l];
      [[unroll]] for (uint i = 0; i < 4; i++)
        if (first + row4 * 4 + i < positions) dscale_rows[row_base + row4 * 4 + i] = sum[i];
    }
  }
}
