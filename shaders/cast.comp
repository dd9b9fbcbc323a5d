// cast: between f32, bf16 and f16. The last word of a 16-bit tensor of odd size has padding.
//! kernel cast
//! kernel cast_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "formats.glsl"

layout(local_size_x = THREADS) in;
layout(constant_id = 0) const uint FROM = F32;
layout(constant_id = 1) const uint TO = F32;
layout(push_constant) uniform Push { uint count; };

layout(binding = 0) readonly buffer B0 { uint x[]; };
layout(binding = 1) writeonly buffer B1 { uint y[]; };

uint load(uint i) { return FROM == F32 ? x[i] : widen(half_of(x[i / 2u], i), FROM); }

void main() {
  uint i = (group_index() * THREADS + gl_LocalInvocationIndex) * 2u;
  if (i >= count) return;
  uint a = load(i);
  uint b = i + 1u < count ? load(i + 1u) : 0u;
  if (TO != F32) {
    y[i / 2u] = narrow(a, TO) | (narrow(b, TO) << 16);
    return;
  }
  y[i] = a;
  if (i + 1u < count) y[i + 1u] = b;
}
