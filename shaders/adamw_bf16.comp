// adamw_bf16: adamw of a parameter in bf16, which is rounded to nearest even or stochastically. A thread has four words of two elements, since there are
// four words in a block of random ones.
//! kernel adamw_bf16
//! kernel adamw_bf16_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "formats.glsl"
#include "philox.glsl"

layout(local_size_x = THREADS) in;
layout(constant_id = 0) const bool STOCHASTIC = false;
layout(push_constant) uniform Push {
  uint count; // elements
  float decay;
  uint tensor; // the upper half of the number of a block
  uint block; // the lower half, of the first
};

layout(binding = 0) buffer B0 { uint p[]; };
layout(binding = 1) buffer B1 { float m[]; };
layout(binding = 2) buffer B2 { float v[]; };
layout(binding = 3) readonly buffer B3 { float g[]; };
#include "adamw.glsl"
layout(binding = 6) readonly buffer B6 { uint key[]; };

void main() {
  ADAMW_BEGIN(decay)
  uint thread = group_index() * THREADS + gl_LocalInvocationIndex;
  uvec4 random = uvec4(0u);
  if (STOCHASTIC) random = philox(uvec4(block + thread, tensor, key[2], key[3]), uvec2(key[0], key[1]));
  [[dont_unroll]] for (uint j = 0; j < 4u; j++) {
    uint word = thread * 4u + j;
    if (word * 2u >= count) return;
    uint old = p[word], updated = 0u;
    [[dont_unroll]] for (uint h = 0; h < 2u; h++) {
      uint i = word * 2u + h;
      if (i >= count) break;
      float x = uintBitsToFloat(half_of(old, h) << 16);
      ADAMW(x, m[i], v[i], g[i])
      uint bits = floatBitsToUint(x);
      bits = STOCHASTIC && !is_nan(x) ? (bits + half_of(random.x, h)) >> 16 : narrow_bf16(bits);
      updated |= bits << (16u * h);
    }
    p[word] = updated;
    random = random.yzwx;
  }
}
