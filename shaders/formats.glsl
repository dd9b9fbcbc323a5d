// Storage of 16 bits: two elements a word, the even one in the low half. Conversions are by integers alone, so that no driver's rounding, flushing
// or fast math has a say.
const uint F32 = 0;
const uint BF16 = 1;
const uint F16 = 2;
const uint NONE = 3; // an operand that is absent

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

// Element i of a tensor of 16 bits, of which word has its part.
uint half_of(uint word, uint i) { return (word >> (16u * (i & 1u))) & 0xffffu; }

// The float32 bits of an element, and those of an element from float32.
uint widen(uint h, uint format) { return format == BF16 ? h << 16 : widen_f16(h); }
uint narrow(uint f, uint format) { return format == BF16 ? narrow_bf16(f) : narrow_f16(f); }

// Element i of a tensor that is bound as words, as float32.
#define ELEMENT_AT(words, i, format) uintBitsToFloat((format) == F32 ? words[i] : widen(half_of(words[(i) / 2], i), format))

// Four elements that were read at once: words of one, or two words of two. Subnormal float16s come out of a sum of normal float32s, which is exact.
vec4 widen4(uvec4 w, uint format) {
  if (format == F32) return uintBitsToFloat(w);
  if (format == BF16) return uintBitsToFloat(uvec4(w.x << 16, w.x & 0xffff0000u, w.y << 16, w.y & 0xffff0000u));
  uvec4 h = uvec4(w.x & 0xffffu, w.x >> 16, w.y & 0xffffu, w.y >> 16);
  uvec4 f = (h & 0x7fffu) << 13;
  uvec4 exponent = f & 0xf800000u;
  f += 0x38000000u; // 2^112
  f = mix(f, f + 0x38000000u, equal(exponent, uvec4(0xf800000u))); // infinite, or not a number
  uvec4 tiny = floatBitsToUint(uintBitsToFloat(f + 0x800000u) - uintBitsToFloat(0x38800000u));
  f = mix(f, tiny, equal(exponent, uvec4(0u)));
  return uintBitsToFloat(f | (h & 0x8000u) << 16);
}
