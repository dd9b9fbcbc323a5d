// row_norms: |x| or |x - its mean| of each row, times that of a row of another tensor, over that of a third. Each is taken of the row times a power of two, so that
// neither squares nor the product overflow or vanish where the result does not.
//! kernel row_norms
//! kernel row_norms_128 THREADS=128
//! kernel row_norms_narrow NARROW=1
//! kernel row_norms_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 4
#include "common.glsl"
#include "storage.glsl"
#include "rows.glsl"

layout(constant_id = 1) const bool HAS_TIMES = false;
layout(constant_id = 2) const bool HAS_OVER = false;
layout(constant_id = 3) const bool CENTERED = false;
layout(push_constant) uniform Push {
  uint row_count;
  uint n; // elements of a row of x, and of the others
  uint times_n;
  uint over_n;
};

layout(binding = 0) readonly buffer B0 { WORD x[]; };
layout(binding = 1) readonly buffer B1 { WORD times[]; };
layout(binding = 2) readonly buffer B2 { WORD over[]; };
layout(binding = 3) writeonly buffer B3 { float y[]; };

// The norm of a row, as var times 2^exponent.
#define NORM(var, exponent, buffer, operand, n, CENTERED) \
  float var = 0.0; \
  int exponent; \
  { \
    uint at = row * (n), end = row < row_count ? (n) : 0; /* lanes without a row still meet the others at the barriers */ \
    for (uint i = lane(); i < end; i += LANES) var = max(var, abs(GET1(buffer, operand, at + i))); \
    exponent = row_exponent(row_max(var)); \
    float down = power_of_two(-exponent), shift = 0.0; \
    if (CENTERED) { \
      for (uint i = lane(); i < end; i += LANES) shift += GET1(buffer, operand, at + i) * down; \
      shift = row_sum(shift) / float(n); \
    } \
    vec2 d = vec2(0.0); \
    for (uint i = lane(); i < end; i += LANES) { \
      float v = GET1(buffer, operand, at + i) * down - shift; \
      d += vec2(v, v * v); \
    } \
    d = row_sum(d); \
    if (CENTERED) { /* what is left of the shift; see row_moments */ \
      d.y -= d.x * (d.x / float(n)); \
      if (!is_nan(d.y) && floatBitsToUint(d.y) > 0x80000000u) d.y = 0.0; \
    } \
    var = sqrt(d.y); \
  }

void main() {
  uint row = group_index() * SLOTS + slot();
  NORM(norm, e, x, 0, n, CENTERED)
  if (HAS_TIMES) {
    NORM(factor, more, times, 1, times_n, false)
    norm *= factor;
    e += more;
  }
  if (HAS_OVER) {
    NORM(divisor, less, over, 2, over_n, false)
    norm /= divisor;
    e -= less;
  }
  if (lane() != 0 || row >= row_count) return;
  e = clamp(e, -252, 252);
  y[row] = norm * power_of_two(e / 2) * power_of_two(e - e / 2);
}
