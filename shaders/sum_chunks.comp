// The second pass of dots and adamw_stats: three sums over the chunks. One group.
//! kernel sum_chunks
//! kernel sum_chunks_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "rows.glsl"

layout(push_constant) uniform Push {
  uint count; // chunks
};

layout(binding = 0) readonly buffer B0 { float chunks[]; };
layout(binding = 1) writeonly buffer B1 { float y[]; };

void main() {
  vec3 s = vec3(0.0);
  for (uint i = lane(); i < count; i += LANES) s += vec3(chunks[3u * i], chunks[3u * i + 1u], chunks[3u * i + 2u]);
  s.xy = row_sum(s.xy);
  s.z = row_sum(s.z);
  if (lane() != 0u) return;
  y[0] = s.x;
  y[1] = s.y;
  y[2] = s.z;
}
