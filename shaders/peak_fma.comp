// peak_fma measures what the device does at most: float32 FMAs on registers alone. Each thread has 12 sums, which with the other threads of its core
// hide the latency of an FMA, and fit the registers of every device; the host gives x and y, so that no compiler knows them. Thread t's sum k starts at
// t % THREADS + k:
//
//	sum = sum * x + y, 8 * rounds times; result[t] = the sum of the thread's sums
//! kernel peak_fma
//! kernel peak_fma_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = THREADS) in;
layout(push_constant) uniform Push {
  uint rounds;
  float x;
  float y;
};

layout(binding = 0) writeonly buffer B0 { float result[]; };

const uint SUMS = 3; // of four

void main() {
  vec4 sums[SUMS];
  vec4 xs = vec4(x), ys = vec4(y);
  [[unroll]] for (uint k = 0; k < SUMS; k++) sums[k] = vec4(gl_LocalInvocationIndex + 4 * k) + vec4(0, 1, 2, 3);
  [[dont_unroll]] for (uint r = 0; r < rounds; r++) {
    [[unroll]] for (uint j = 0; j < 8; j++)
      [[unroll]] for (uint k = 0; k < SUMS; k++) sums[k] = fma(sums[k], xs, ys);
  }
  vec4 total = sums[0];
  [[unroll]] for (uint k = 1; k < SUMS; k++) total += sums[k];
  result[group_index() * THREADS + gl_LocalInvocationIndex] = total.x + total.y + total.z + total.w;
}
