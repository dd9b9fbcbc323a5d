// The first pass of attention_grad: delta[t] = do[t]·o[t] for each head, lanes over the head's elements.
//! kernel attention_delta
//! kernel attention_delta_128 THREADS=128
//! kernel attention_delta_narrow NARROW=1
//! kernel attention_delta_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 1
#include "common.glsl"
#include "storage.glsl"
#include "rows.glsl"

layout(push_constant) uniform Push {
  uint row_count; // rows are heads of positions, in order (b, t, head)
  uint n; // elements of a head
  uint heads;
  uint positions;
};

layout(binding = 0) readonly buffer B0 { WORD dout[]; };
layout(binding = 1) readonly buffer B1 { WORD o[]; };
layout(binding = 2) writeonly buffer B2 { float delta[]; };

void main() {
  uint row = group_index() * SLOTS + slot();
  uint length = n / PER_E;
  uint end = row < row_count ? length : 0;
  float s = 0.0;
  for (uint i = lane(); i < end; i += LANES) s += TOTAL(GET(dout, 0, row * length + i) * GET(o, 1, row * length + i));
  s = row_sum(s);
  if (lane() != 0 || row >= row_count) return;
  uint token = row / heads;
  uint at = (token / positions * heads + row % heads) * positions + token % positions; // (b, head, t)
  delta[at] = s;
}
