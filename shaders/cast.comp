// cast: between f32, bf16 and f16, by integers alone, so that no driver's rounding, flushing or fast math has a say. A 16-bit tensor is
// read and written two elements a word; the last word of an odd one has padding.
//! kernel cast
//! kernel cast_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = THREADS) in;
layout(constant_id = 0) const uint FROM = 0; // 0 f32, 1 bf16, 2 f16
layout(constant_id = 1) const uint TO = 0;
layout(push_constant) uniform Push { uint count; };

layout(binding = 0) readonly buffer B0 { uint x[]; };
layout(binding = 1) writeonly buffer B1 { uint y[]; };

// The bits of a float16 as those of the float32 of the same value.
uint widen_f16(uint h) {
  uint sign = (h & 0x8000u) << 16;
  uint exponent = (h >> 10) & 31u;
  uint fraction = h & 0x3ffu;
  if (exponent == 31u) return sign | 0x7f800000u | (fraction << 13);
  if (exponent != 0u) return sign | ((exponent + 112u) << 23) | (fraction << 13);
  if (fraction == 0u) return sign;
  uint top = uint(findMSB(fraction)); // subnormal: fraction 2^-24
  return sign | ((top + 103u) << 23) | ((fraction << (23u - top)) & 0x7fffffu);
}

// Rounds to nearest, ties to even, dropping `drop` low bits.
uint round_even(uint v, uint drop) {
  return (v + (1u << (drop - 1u)) - 1u + ((v >> drop) & 1u)) >> drop;
}

uint narrow_f16(uint f) {
  uint sign = (f >> 16) & 0x8000u;
  uint a = f & 0x7fffffffu;
  if (a > 0x7f800000u) return sign | 0x7e00u | ((a >> 13) & 0x1ffu);
  if (a >= 0x477ff000u) return sign | 0x7c00u; // 65520 and more
  if (a >= 0x38800000u) return sign | round_even(a - 0x38000000u, 13u); // a carry into the exponent is right
  if (a < 0x33000000u) return sign; // below 2^-25, half the smallest
  uint drop = 126u - (a >> 23); // 14 to 24
  return sign | round_even((a & 0x7fffffu) | 0x800000u, drop);
}

uint narrow_bf16(uint f) {
  if ((f & 0x7fffffffu) > 0x7f800000u) return (f >> 16) | 0x40u;
  return round_even(f, 16u) & 0xffffu;
}

uint load(uint i) {
  if (FROM == 0u) return x[i];
  uint h = (x[i / 2u] >> (16u * (i & 1u))) & 0xffffu;
  return FROM == 1u ? h << 16 : widen_f16(h);
}

uint narrow(uint f) { return TO == 1u ? narrow_bf16(f) : narrow_f16(f); }

void main() {
  uint i = (group_index() * THREADS + gl_LocalInvocationIndex) * 2u;
  if (i >= count) return;
  uint a = load(i);
  uint b = i + 1u < count ? load(i + 1u) : 0u;
  if (TO != 0u) {
    y[i / 2u] = narrow(a) | (narrow(b) << 16);
    return;
  }
  y[i] = a;
  if (i + 1u < count) y[i + 1u] = b;
}
