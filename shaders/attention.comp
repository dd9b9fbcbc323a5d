// attention: causal, grouped-query, fused: softmax over the keys of a tile at a time, with a running maximum and sum (Dao 2022, algorithm 1),
// so that logits are never stored. A group has TILE queries of one head. With STATS also each query's largest logit and the entropy of its weights.
//! kernel attention TILE=32 STATS=0
//! kernel attention_16 TILE=16 STATS=0
//! kernel attention_stats TILE=32 STATS=1
//! kernel attention_stats_16 TILE=16 STATS=1
//! kernel attention_narrow TILE=32 STATS=0 NARROW=1
//! kernel attention_narrow_16 TILE=16 STATS=0 NARROW=1
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 3
#include "common.glsl"
#include "storage.glsl"
#include "math.glsl"
#include "attention.glsl"

layout(binding = 0) readonly buffer B0 { WORD q[]; };
layout(binding = 1) readonly buffer B1 { WORD k[]; };
layout(binding = 2) readonly buffer B2 { WORD v[]; };
layout(binding = 3) readonly buffer B3 { float scale_operand[]; };
layout(binding = 4) writeonly buffer B4 { WORD o[]; };
layout(binding = 5) writeonly buffer B5 { float lse[]; };
#if STATS
layout(binding = 6) writeonly buffer B6 { float largest[]; };
layout(binding = 7) writeonly buffer B7 { float entropy[]; };
#endif

shared vec4 weights[TILE * WEIGHTS];
shared vec4 tops[THREADS];
shared vec4 sums[THREADS];
#if STATS
shared vec4 terms[THREADS];
#endif

#define ADD_VALUES(c) \
  if (c > 0) barrier(); \
  LOAD(right, v, 2, kv_base + key * kv_stride, kv_stride, key, c) \
  barrier(); \
  [[unroll]] for (uint i = 0; i < 4; i++) acc[c][i] *= fade[i]; \
  if (col * 4 < WIDTH) ACCUMULATE_QUERIES(acc[c], weights, diagonal)

#define STORE_OUTPUT(c) STORE(o, 3, acc[c], inverse, q_base, stride, first, c)

void main() {
  uint group = group_index();
  if (group >= count) return;
  uint tile = tiles - 1 - group % tiles; // the longest first
  uint head = group / tiles % heads;
  uint batch = group / tiles / heads;
  uint stride = heads * HEAD_DIM;
  uint kv_stride = kv_heads * HEAD_DIM;
  uint first = tile * TILE;
  uint q_base = (batch * positions + first) * stride + head * HEAD_DIM;
  uint kv_base = batch * positions * kv_stride + head / (heads / kv_heads) * HEAD_DIM;
  float scale = HAS_SCALE ? scale_operand[0] : scale_value;

  vec4 acc[CHUNKS][4];
  [[unroll]] for (uint c = 0; c < CHUNKS; c++)
    [[unroll]] for (uint i = 0; i < 4; i++) acc[c][i] = vec4(0.0);
  vec4 top = vec4(LOWEST);
  vec4 sum = vec4(0.0); // of p = exp(s - top)
#if STATS
  vec4 term = vec4(0.0); // sum of p (s - top), of which no part is positive
#endif

  [[dont_unroll]] for (uint key = 0; key <= first; key += TILE) {
    bool diagonal = key == first;
    vec4 s[COLUMNS];
    [[unroll]] for (uint j = 0; j < COLUMNS; j++) s[j] = vec4(0.0);
    [[dont_unroll]] for (uint c = 0; c * CHUNK < HEAD_DIM; c++) {
      barrier();
      if (HEAD_DIM > CHUNK || key == 0) LOAD(left, q, 0, q_base, stride, first, c)
      LOAD(right, k, 1, kv_base + key * kv_stride, kv_stride, key, c)
      barrier();
      product(s, c);
    }
    vec4 slope;
    [[unroll]] for (uint j = 0; j < COLUMNS; j++) s[j] = soft_cap(s[j] * scale, slope);

    // A key after the query: neither in the maximum nor in the sum.
    bvec4 seen[COLUMNS];
    vec4 larger = vec4(LOWEST);
    [[unroll]] for (uint j = 0; j < COLUMNS; j++)
      [[unroll]] for (uint i = 0; i < 4; i++) {
        seen[j][i] = !diagonal || col + 16 * j <= row4 * 4 + i;
        larger[i] = seen[j][i] && s[j][i] > larger[i] ? s[j][i] : larger[i];
      }
    tops[tid] = larger;
    barrier();
    [[dont_unroll]] for (uint l = 0; l < 16; l++) {
      vec4 t = tops[row4 * 16 + l];
      larger = mix(larger, t, greaterThan(t, larger));
    }
    larger = mix(larger, top, greaterThan(top, larger));
    vec4 fade = exp_(top - larger);
#if STATS
    if (key > 0) term = (term + (top - larger) * sum) * fade;
    vec4 term_part = vec4(0.0);
#endif
    top = larger;
    vec4 part = vec4(0.0);
    [[unroll]] for (uint j = 0; j < COLUMNS; j++) {
      vec4 p = mix(vec4(0.0), exp_(s[j] - top), seen[j]);
      weights[(col + 16 * j) * WEIGHTS + row4] = p;
      part += p;
#if STATS
      term_part += mix(vec4(0.0), p * (s[j] - top), greaterThan(p, vec4(0.0))); // 0 times a logit of -inf is nothing
#endif
    }
    sums[tid] = part;
#if STATS
    terms[tid] = term_part;
#endif
    sum *= fade;
    EACH_CHUNK(ADD_VALUES)
    [[dont_unroll]] for (uint l = 0; l < 16; l++) {
      sum += sums[row4 * 16 + l];
#if STATS
      term += terms[row4 * 16 + l];
#endif
    }
  }

  vec4 inverse = 1.0 / sum;
  EACH_CHUNK(STORE_OUTPUT)
  if (col == 0)
    [[unroll]] for (uint i = 0; i < 4; i++)
      if (first + row4 * 4 + i < positions) {
        uint row = (batch * heads + head) * positions + first + row4 * 4 + i;
        float l = top[i] + log_(sum[i]);
        lse[row] = l;
#if STATS
        largest[row] = is_finite(l) ? top[i] : l; // the running maximum passes over NaNs
        entropy[row] = log_(sum[i]) - term[i] / sum[i];
#endif
      }
}
