// cross_entropy_grad: dlogits[r,j] = dlosses[r] (exp(logits - lse) (1 + 2 zloss lse) - [j == target]); 0 where the target is no class.
//! kernel cross_entropy_grad
//! kernel cross_entropy_grad_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "math.glsl"
#include "rows.glsl"

layout(push_constant) uniform Push {
  uint row_count;
  uint n; // classes
  float zloss;
};

layout(binding = 0) readonly buffer B0 { float logits[]; };
layout(binding = 1) readonly buffer B1 { uint targets[]; };
layout(binding = 2) readonly buffer B2 { float lses[]; };
layout(binding = 3) readonly buffer B3 { float dlosses[]; };
layout(binding = 4) writeonly buffer B4 { float dlogits[]; };

void main() {
  uint row = group_index() * SLOTS + slot();
  if (row >= row_count) return;
  uint at = row * n;
  uint target = targets[row];
  float lse = lses[row];
  float d = dlosses[row];
  float z = 1.0 + 2.0 * zloss * lse;
  for (uint i = lane(); i < n; i += LANES) {
    float p = exp_(logits[at + i] - lse) * z;
    if (i == target) p -= 1.0;
    dlogits[at + i] = target < n ? d * p : 0.0;
  }
}
