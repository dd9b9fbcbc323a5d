// rms_norm and layer_norm: y = addend + (x - mean) / sqrt(mean((x - mean)²) + eps) gain; without CENTERED the mean is taken as 0. With NEXT also the norm
// of y, z: a module's output norm, the residual sum and the next module's input norm are one pass.
//! kernel norm NEXT=0
//! kernel norm_128 NEXT=0 THREADS=128
//! kernel norm_narrow NEXT=0 NARROW=1
//! kernel norm_narrow_128 NEXT=0 NARROW=1 THREADS=128
//! kernel norm_next NEXT=1
//! kernel norm_next_128 NEXT=1 THREADS=128
//! kernel norm_next_narrow NEXT=1 NARROW=1
//! kernel norm_next_narrow_128 NEXT=1 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#if NEXT
#define FORMATS_ID 6
#else
#define FORMATS_ID 4
#endif
#include "common.glsl"
#include "storage.glsl"
#include "math.glsl"
#include "rows.glsl"

layout(constant_id = 1) const bool CENTERED = false;
layout(constant_id = 2) const bool HAS_GAIN = false;
layout(constant_id = 3) const bool HAS_ADDEND = false;
layout(push_constant) uniform Push {
  uint row_count;
  uint n; // elements of a row
  float inv_n;
  float eps;
#if NEXT
  float next_eps;
#endif
};

layout(binding = 0) readonly buffer B0 { WORD x[]; };
layout(binding = 1) readonly buffer B1 { float gain[]; };
layout(binding = 2) readonly buffer B2 { WORD addend[]; };
#if NEXT
layout(constant_id = 4) const bool NEXT_CENTERED = false;
layout(constant_id = 5) const bool HAS_NEXT_GAIN = false;
layout(binding = 3) buffer B3 { WORD y[]; };
layout(binding = 4) readonly buffer B4 { float next_gain[]; };
layout(binding = 5) writeonly buffer B5 { WORD z[]; };
#else
layout(binding = 3) writeonly buffer B3 { WORD y[]; };
#endif

// The mean of a row, 0 if it is not to be subtracted, and the reciprocal root.
#define STATISTICS(mean, root, buffer, operand, CENTERED, eps) \
  float mean = 0.0; \
  if (CENTERED) { \
    float s_ = 0.0; \
    for (uint i = lane(); i < end; i += LANES) s_ += TOTAL(GET(buffer, operand, at + i)); \
    mean = row_sum(s_) * inv_n; \
  } \
  float root = 0.0; \
  for (uint i = lane(); i < end; i += LANES) { \
    E v_ = GET(buffer, operand, at + i) - mean; \
    root += TOTAL(v_ * v_); \
  } \
  root = rsqrt_(row_sum(root) * inv_n + eps);

void main() {
  uint row = group_index() * SLOTS + slot();
  uint end = row < row_count ? n / PER_E : 0; // lanes without a row still meet the others at the barriers
  uint at = row * (n / PER_E);
  STATISTICS(mean, r, x, 0, CENTERED, eps)
  for (uint i = lane(); i < end; i += LANES) {
    E v = (GET(x, 0, at + i) - mean) * r;
    if (HAS_GAIN) v *= GET_F32(gain, i);
    if (HAS_ADDEND) v += GET(addend, 1, at + i);
    PUT(y, 2, at + i, v)
  }
#if NEXT
  // Each thread reads what it has itself written, rounded to y's format.
  STATISTICS(next_mean, next_r, y, 2, NEXT_CENTERED, next_eps)
  for (uint i = lane(); i < end; i += LANES) {
    E v = (GET(y, 2, at + i) - next_mean) * next_r;
    if (HAS_NEXT_GAIN) v *= GET_F32(next_gain, i);
    PUT(z, 3, at + i, v)
  }
#endif
}
