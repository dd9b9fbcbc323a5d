// top_magnitudes: the k largest magnitudes of each chunk of THREADS times EACH elements, the largest first; then of what the chunks gave, until there is one.
// The k-th largest is found by its digits, two bits at a time: magnitudes are in the order of their bits, in which a NaN is above all numbers.
//! kernel top_magnitudes
//! kernel top_magnitudes_128 THREADS=128
//! kernel top_magnitudes_narrow NARROW=1
//! kernel top_magnitudes_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 0
#include "common.glsl"
#include "storage.glsl"

layout(local_size_x = THREADS) in;
layout(push_constant) uniform Push {
  uint count; // elements
  uint first; // chunk
  uint k; // at most 128
};

layout(binding = 0) readonly buffer B0 { WORD x[]; };
layout(binding = 1) writeonly buffer B1 { uint y[]; }; // k of each chunk

const uint EACH = 16; // elements a thread, in registers
const uint PARTS = 16; // of a sum over the threads

shared uvec2 lanes[THREADS];
shared uvec2 parts[PARTS];
shared uint above[128]; // the magnitudes above the k-th, in any order
shared uint found; // how many

// The sum over all threads; as in rows.glsl, two barriers, and two arrays.
uvec2 total(uvec2 v) {
  uint t = gl_LocalInvocationIndex;
  lanes[t] = v;
  barrier();
  if (t < PARTS) {
    for (uint j = t + PARTS; j < THREADS; j += PARTS) v += lanes[j];
    parts[t] = v;
  }
  barrier();
  v = parts[0];
  for (uint j = 1; j < PARTS; j++) v += parts[j];
  return v;
}

void main() {
  uint t = gl_LocalInvocationIndex;
  uint from = group_index() * (THREADS * EACH);
  if (from >= count) return; // the whole group
  uint key[EACH];
  [[unroll]] for (uint e = 0; e < EACH; e++) {
    uint i = from + e * THREADS + t;
    key[e] = i < count ? floatBitsToUint(GET1(x, 0, i)) & 0x7fffffffu : 0u;
  }
  if (t == 0u) found = 0u;
  uint kth = 0u; // as far as its digits are known, the others 0
  [[dont_unroll]] for (int shift = 30; shift >= 0; shift -= 2) {
    uvec3 digit = uvec3(kth) + (uvec3(1u, 2u, 3u) << uint(shift));
    uvec2 c = uvec2(0u); // how many keys have the digit 1 or more, and 2 or more in the upper half; and 3
    [[unroll]] for (uint e = 0; e < EACH; e++) {
      c += uvec2(uint(key[e] >= digit.x) + (uint(key[e] >= digit.y) << 16), uint(key[e] >= digit.z));
    }
    c = total(c);
    if (c.y >= k) kth = digit.z;
    else if ((c.x >> 16) >= k) kth = digit.y;
    else if ((c.x & 0xffffu) >= k) kth = digit.x;
  }
  [[unroll]] for (uint e = 0; e < EACH; e++) {
    if (key[e] > kth) above[atomicAdd(found, 1u)] = key[e]; // fewer than k
  }
  barrier();
  if (t >= k) return;
  uint mine = kth;
  uint rank = t;
  if (t < found) {
    mine = above[t];
    rank = 0u;
    for (uint j = 0; j < found; j++) rank += uint(above[j] > mine || above[j] == mine && j < t);
  }
  y[(first + group_index()) * k + rank] = mine;
}
