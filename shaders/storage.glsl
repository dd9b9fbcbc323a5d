// How kernels see activations. Plain kernels have them as floats, E is a float. NARROW ones have them as words, each operand f32, bf16 or f16 by
// two bits of FORMATS, and go over pairs of elements, E a vec2, so that each word has one writer. FORMATS_ID is FORMATS' constant_id.

#ifdef NARROW
#include "formats.glsl"

layout(constant_id = FORMATS_ID) const uint FORMATS = 0;

#define E vec2
#define WORD uint
const uint PER_E = 2;

uint format(uint operand) { return (FORMATS >> (2u * operand)) & 3u; }

// A word's two elements. GLSL's own unpackHalf2x16 is exact; its packHalf2x16 may round either way, so rounding is by integers.
vec2 unpacked(uint w, uint format) {
  return format == BF16 ? uintBitsToFloat(uvec2(w << 16, w & 0xffff0000u)) : unpackHalf2x16(w);
}

uint packed(vec2 v, uint format) {
  return narrow(floatBitsToUint(v.x), format) | (narrow(floatBitsToUint(v.y), format) << 16);
}

// E number i of an operand.
#define GET(buffer, operand, i) \
  (format(operand) == F32 ? uintBitsToFloat(uvec2(buffer[2u * (i)], buffer[2u * (i) + 1u])) : unpacked(buffer[i], format(operand)))
#define PUT(buffer, operand, i, value) \
  { \
    vec2 value_ = value; \
    if (format(operand) == F32) { \
      buffer[2u * (i)] = floatBitsToUint(value_.x); \
      buffer[2u * (i) + 1u] = floatBitsToUint(value_.y); \
    } else { \
      buffer[i] = packed(value_, format(operand)); \
    } \
  }
// Element i.
#define GET1(buffer, operand, i) ELEMENT_AT(buffer, i, format(operand))
// E number i of a buffer of floats.
#define GET_F32(buffer, i) vec2(buffer[2u * (i)], buffer[2u * (i) + 1u])
#define PUT_F32(buffer, i, value) \
  { \
    vec2 value_ = value; \
    buffer[2u * (i)] = value_.x; \
    buffer[2u * (i) + 1u] = value_.y; \
  }
#define TOTAL(e) ((e).x + (e).y)
#define MAP1(f, a) vec2(f((a).x), f((a).y))
#define MAP2(f, a, b) vec2(f((a).x, (b).x), f((a).y, (b).y))
#define MAP3(f, a, b, c) vec2(f((a).x, (b).x, (c).x), f((a).y, (b).y, (c).y))
#else
#define E float
#define WORD float
const uint PER_E = 1;

#define GET(buffer, operand, i) buffer[i]
#define PUT(buffer, operand, i, value) buffer[i] = value;
#define GET1(buffer, operand, i) buffer[i]
#define GET_F32(buffer, i) buffer[i]
#define PUT_F32(buffer, i, value) buffer[i] = value;
#define TOTAL(e) (e)
#define MAP1(f, a) f(a)
#define MAP2(f, a, b) f(a, b)
#define MAP3(f, a, b, c) f(a, b, c)
#endif
