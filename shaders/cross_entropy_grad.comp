// cross_entropy_grad: dlogits[r,j] = dlosses[r] (exp(logits - lse) (1 + 2 zloss lse) - [j == target]); 0 where the target is no class.
//! kernel cross_entropy_grad
//! kernel cross_entropy_grad_128 THREADS=128
//! kernel cross_entropy_grad_narrow NARROW=1
//! kernel cross_entropy_grad_narrow_128 NARROW=1 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#define FORMATS_ID 1
#include "common.glsl"
#include "storage.glsl"
#include "math.glsl"
#include "rows.glsl"

layout(push_constant) uniform Push {
  uint row_count;
  uint n; // classes
  float zloss;
};

layout(binding = 0) readonly buffer B0 { WORD logits[]; };
layout(binding = 1) readonly buffer B1 { uint targets[]; };
layout(binding = 2) readonly buffer B2 { float lses[]; };
layout(binding = 3) readonly buffer B3 { float dlosses[]; };
layout(binding = 4) writeonly buffer B4 { WORD dlogits[]; };

struct Row {
  uint target;
  float lse, d, z;
};

Row row_at(uint row) { return Row(targets[row], lses[row], dlosses[row], 1.0 + 2.0 * zloss * lses[row]); }

float gradient(Row r, uint i, float logit) {
  float p = exp_(logit - r.lse) * r.z;
  if (i == r.target) p -= 1.0;
  return r.target < n ? r.d * p : 0.0;
}

void main() {
  uint row = group_index() * SLOTS + slot();
  if (row >= row_count) return;
  Row r = row_at(row);
#ifdef NARROW
  // A word is written with the row of its first element; where n is odd, the second one may be the next row's.
  for (uint w = (row * n + 1) / 2 + lane(); 2 * w < (row + 1) * n; w += LANES) {
    uint i = 2 * w - row * n;
    vec2 x = GET(logits, 0, w);
    vec2 d = vec2(gradient(r, i, x.x), 0.0);
    if (i + 1 < n) {
      d.y = gradient(r, i + 1, x.y);
    } else if (row + 1 < row_count) {
      d.y = gradient(row_at(row + 1), 0, x.y);
    }
    PUT(dlogits, 1, w, d)
  }
#else
  for (uint i = lane(); i < n; i += LANES) dlogits[row * n + i] = gradient(r, i, logits[row * n + i]);
#endif
}
