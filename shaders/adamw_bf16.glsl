// What adamw_bf16 and adamw_bf16_many share: the step of AdamW on four words of two elements, since there are four words in a block of random ones.
#include "formats.glsl"
#include "philox.glsl"

layout(constant_id = 0) const bool STOCHASTIC = false;
layout(binding = 0) buffer B0 { uint p[]; };
layout(binding = 1) buffer B1 { float m[]; };
layout(binding = 2) buffer B2 { float v[]; };
layout(binding = 3) readonly buffer B3 { float g[]; };
#include "adamw.glsl"
layout(binding = 6) readonly buffer B6 { uint key[]; };

// The step of a thread on a tensor of so many elements, of which p begins at word at.x, m, v and g at elements at.y, at.z and at.w. A thread's block of random words
// has a number of two halves, the lower first.
void update(uint thread, uint count, uvec4 at, float decay, uvec2 block) {
  ADAMW_BEGIN(decay)
  uvec4 random = uvec4(0u);
  if (STOCHASTIC) random = philox(uvec4(block, key[2], key[3]), uvec2(key[0], key[1]));
  [[dont_unroll]] for (uint j = 0; j < 4u; j++) {
    uint word = thread * 4u + j;
    if (word * 2u >= count) return;
    uint old = p[at.x + word], updated = 0u;
    [[dont_unroll]] for (uint h = 0; h < 2u; h++) {
      uint i = word * 2u + h;
      if (i >= count) break;
      float x = uintBitsToFloat(half_of(old, h) << 16);
      ADAMW(x, m[at.y + i], v[at.z + i], g[at.w + i])
      uint bits = floatBitsToUint(x);
      bits = STOCHASTIC && !is_nan(x) ? (bits + half_of(random.x, h)) >> 16 : narrow_bf16(bits);
      updated |= bits << (16u * h);
    }
    p[at.x + word] = updated;
    random = random.yzwx;
  }
}
