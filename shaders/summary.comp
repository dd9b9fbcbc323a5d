// summary, of x or of x - minus: sum, smallest, largest, largest magnitude, number of magnitudes over a threshold (and of NaNs), number of elements that are not finite. With FIRST, of each
// chunk of THREADS times EACH elements, as six words; then of the chunks.
//! kernel summary_chunks FIRST=1
//! kernel summary_chunks_128 FIRST=1 THREADS=128
//! kernel summary_chunks_narrow FIRST=1 NARROW=1
//! kernel summary_chunks_narrow_128 FIRST=1 NARROW=1 THREADS=128
//! kernel summary FIRST=0
//! kernel summary_128 FIRST=0 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 1
#include "common.glsl"
#include "storage.glsl"

layout(local_size_x = THREADS) in;
layout(push_constant) uniform Push {
  uint count; // elements, or chunks
#if FIRST
  uint first; // chunk
  float threshold;
#endif
};

#if FIRST
layout(constant_id = 0) const bool HAS_MINUS = false;
layout(binding = 0) readonly buffer B0 { WORD x[]; };
layout(binding = 1) readonly buffer B1 { WORD minus[]; };
layout(binding = 2) writeonly buffer B2 { uint chunks[]; };
#else
layout(binding = 0) readonly buffer B0 { uint chunks[]; };
layout(binding = 1) writeonly buffer B1 { float y[]; };
#endif

const uint EACH = 64; // elements a thread
const uint INFINITY = 0x7f800000u;

shared float sums[THREADS];
shared uvec4 most[THREADS]; // of the order's complement, the order, and the magnitude
shared uvec2 counts[THREADS]; // over the threshold, and not finite

// A float's bits as a number that grows with it, and back.
uint ordered(uint bits) { return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u; }
float unordered(uint o) { return uintBitsToFloat((o & 0x80000000u) != 0u ? o & 0x7fffffffu : ~o); }

void reduce() {
  uint t = gl_LocalInvocationIndex;
  for (uint half_ = THREADS / 2; half_ > 0u; half_ /= 2) {
    barrier();
    if (t < half_) {
      sums[t] += sums[t + half_];
      most[t] = max(most[t], most[t + half_]);
      counts[t] += counts[t + half_];
    }
  }
}

#if FIRST
void main() {
  uint t = gl_LocalInvocationIndex;
  uint from = group_index() * (THREADS * EACH);
  if (from >= count) return; // the whole group
  float sum = 0.0;
  uvec3 m = uvec3(0u); // below every number's
  uvec2 c = uvec2(0u);
  uint limit = floatBitsToUint(threshold);
  for (uint i = from + t, end = min(count, from + THREADS * EACH); i < end; i += THREADS) {
    float v = GET1(x, 0, i);
    if (HAS_MINUS) v -= GET1(minus, 1, i);
    uint o = ordered(floatBitsToUint(v));
    uint a = floatBitsToUint(v) & 0x7fffffffu;
    sum += v;
    m = max(m, uvec3(~o, o, a));
    c += uvec2(a > limit, a >= INFINITY);
  }
  sums[t] = sum;
  most[t] = uvec4(m, 0u);
  counts[t] = c;
  reduce();
  if (t != 0u) return;
  uint at = 6u * (first + group_index());
  chunks[at] = floatBitsToUint(sums[0]);
  chunks[at + 1u] = most[0].x;
  chunks[at + 2u] = most[0].y;
  chunks[at + 3u] = most[0].z;
  chunks[at + 4u] = counts[0].x;
  chunks[at + 5u] = counts[0].y;
}
#else
void main() {
  uint t = gl_LocalInvocationIndex;
  float sum = 0.0;
  uvec3 m = uvec3(0u);
  uvec2 c = uvec2(0u);
  for (uint i = t; i < count; i += THREADS) {
    sum += uintBitsToFloat(chunks[6u * i]);
    m = max(m, uvec3(chunks[6u * i + 1u], chunks[6u * i + 2u], chunks[6u * i + 3u]));
    c += uvec2(chunks[6u * i + 4u], chunks[6u * i + 5u]);
  }
  sums[t] = sum;
  most[t] = uvec4(m, 0u);
  counts[t] = c;
  reduce();
  if (t != 0u) return;
  const float NOT_A_NUMBER = uintBitsToFloat(0x7fc00000u);
  bool nan = most[0].z > INFINITY;
  y[0] = nan ? NOT_A_NUMBER : sums[0];
  y[1] = nan ? NOT_A_NUMBER : unordered(~most[0].x);
  y[2] = nan ? NOT_A_NUMBER : unordered(most[0].y);
  y[3] = uintBitsToFloat(most[0].z);
  y[4] = float(counts[0].x);
  y[5] = float(counts[0].y);
}
#endif
