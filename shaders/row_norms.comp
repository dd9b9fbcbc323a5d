// row_norms: |x| of each row, times that of a row of another tensor, over that of a third.
//! kernel row_norms
//! kernel row_norms_128 THREADS=128
//! kernel row_norms_narrow NARROW=1
//! kernel row_norms_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 3
#include "common.glsl"
#include "storage.glsl"
#include "rows.glsl"

layout(constant_id = 1) const bool HAS_TIMES = false;
layout(constant_id = 2) const bool HAS_OVER = false;
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

#define NORM(var, buffer, operand, n) \
  float var = 0.0; \
  for (uint i = lane(), at_ = row * (n), end_ = row < row_count ? (n) : 0; i < end_; i += LANES) { \
    float v_ = GET1(buffer, operand, at_ + i); \
    var += v_ * v_; \
  } \
  var = sqrt(row_sum(var));

void main() {
  uint row = group_index() * SLOTS + slot(); // lanes without a row still meet the others at the barriers
  NORM(norm, x, 0, n)
  if (HAS_TIMES) {
    NORM(factor, times, 1, times_n)
    norm *= factor;
  }
  if (HAS_OVER) {
    NORM(divisor, over, 2, over_n)
    norm /= divisor;
  }
  if (lane() == 0 && row < row_count) y[row] = norm;
}
