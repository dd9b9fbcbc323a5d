// dots: the product and the squares of two tensors, of each chunk of THREADS times EACH elements; sum_chunks adds them up.
//! kernel dots_chunks
//! kernel dots_chunks_128 THREADS=128
//! kernel dots_chunks_narrow NARROW=1
//! kernel dots_chunks_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 1
#include "common.glsl"
#include "storage.glsl"
#include "rows.glsl"
#include "chunks.glsl"

layout(binding = 0) readonly buffer B0 { WORD u[]; };
layout(binding = 1) readonly buffer B1 { WORD v[]; };
layout(binding = 2) writeonly buffer B2 { float chunks[]; };

void main() {
  vec3 s = vec3(0.0);
  EACH_OF_CHUNK(i) {
    float a = GET1(u, 0, i);
    float b = GET1(v, 1, i);
    s += vec3(a * b, a * a, b * b);
  }
  PUT_CHUNK(s)
}
