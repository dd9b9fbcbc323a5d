// adamw_stats: the product and the squares of what AdamW will add to a parameter and of the parameter, of each chunk of THREADS times EACH elements;
// sum_chunks adds them up.
//! kernel adamw_stats_chunks
//! kernel adamw_stats_chunks_128 THREADS=128
//! kernel adamw_stats_chunks_narrow NARROW=1
//! kernel adamw_stats_chunks_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 1
#define CHUNKS_DECAY
#include "common.glsl"
#include "storage.glsl"
#include "rows.glsl"
#include "chunks.glsl"

layout(binding = 0) readonly buffer B0 { WORD p[]; };
layout(binding = 1) readonly buffer B1 { float m[]; };
layout(binding = 2) readonly buffer B2 { float v[]; };
layout(binding = 3) readonly buffer B3 { float g[]; };
#include "adamw.glsl"
layout(binding = 6) writeonly buffer B6 { float chunks[]; };

void main() {
  vec3 s = vec3(0.0);
  EACH_OF_CHUNK(i) {
    float x = GET1(p, 0, i);
    ADAMW_MOMENTS(m[i], v[i], g[i])
    float update = clip == 0.0 ? 0.0 : -lr * (decay * weight_decay * x) - ADAMW_STEP;
    s += vec3(update * x, update * update, x * x);
  }
  PUT_CHUNK(s)
}
