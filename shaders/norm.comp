// rms_norm and layer_norm: y = addend + (x - mean) / sqrt(mean((x - mean)²) + eps) gain; without CENTERED the mean is taken as 0.
//! kernel norm
//! kernel norm_128 THREADS=128
//! kernel norm_narrow NARROW=1
//! kernel norm_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 4
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
};

layout(binding = 0) readonly buffer B0 { WORD x[]; };
layout(binding = 1) readonly buffer B1 { float gain[]; };
layout(binding = 2) readonly buffer B2 { WORD addend[]; };
layout(binding = 3) writeonly buffer B3 { WORD y[]; };

void main() {
  uint row = group_index() * SLOTS + slot();
  uint end = row < row_count ? n / PER_E : 0; // lanes without a row still meet the others at the barriers
  uint at = row * (n / PER_E);
  float mean = 0.0;
  if (CENTERED) {
    float s = 0.0;
    for (uint i = lane(); i < end; i += LANES) s += TOTAL(GET(x, 0, at + i));
    mean = row_sum(s) * inv_n;
  }
  float s = 0.0;
  for (uint i = lane(); i < end; i += LANES) {
    E v = GET(x, 0, at + i) - mean;
    s += TOTAL(v * v);
  }
  float r = rsqrt_(row_sum(s) * inv_n + eps);
  for (uint i = lane(); i < end; i += LANES) {
    E v = (GET(x, 0, at + i) - mean) * r;
    if (HAS_GAIN) v *= GET_F32(gain, i);
    if (HAS_ADDEND) v += GET(addend, 1, at + i);
    PUT(y, 2, at + i, v)
  }
}
