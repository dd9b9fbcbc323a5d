// cross_entropy: lse = log sum exp(logits), losses = lse - logits[target] + zloss lse²; 0 where the target is no class.
//! kernel cross_entropy
//! kernel cross_entropy_128 THREADS=128
//! kernel cross_entropy_narrow NARROW=1
//! kernel cross_entropy_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 1
#include "common.glsl"
#include "storage.glsl"
#include "math.glsl"
#include "rows.glsl"
#include "online.glsl"

layout(push_constant) uniform Push {
  uint row_count;
  uint n; // classes
  float zloss;
};

layout(binding = 0) readonly buffer B0 { WORD logits[]; };
layout(binding = 1) readonly buffer B1 { uint targets[]; };
layout(binding = 2) writeonly buffer B2 { float losses[]; };
layout(binding = 3) writeonly buffer B3 { float lses[]; };

void main() {
  uint row = group_index() * SLOTS + slot();
  uint end = row < row_count ? n : 0;
  uint at = row * n;
  vec2 a = NOTHING;
  for (uint i = lane(); i < end; i += LANES) a = online_add(a, GET1(logits, 0, at + i));
  a = row_merge(a);
  if (lane() != 0 || row >= row_count) return;
  float log_sum = log_(a.y);
  float lse = a.x + log_sum;
  lses[row] = lse;
  uint target = targets[row]; // a negative one is a large number here
  // The largest logit is taken from the target's first: the difference is exact where they are close.
  losses[row] = target < n ? (a.x - GET1(logits, 0, at + target)) + log_sum + zloss * lse * lse : 0.0;
}
