// adamw: one pass over a parameter and its moments, in place (Loshchilov & Hutter 2019).
//! kernel adamw
//! kernel adamw_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "pointwise.glsl"

layout(binding = 0) buffer B0 { float p[]; };
layout(binding = 1) buffer B1 { float m[]; };
layout(binding = 2) buffer B2 { float v[]; };
layout(binding = 3) readonly buffer B3 { float g[]; };
layout(binding = 4) readonly buffer B4 { float lr, beta1, beta2, eps, weight_decay, bias1, bias2; };
layout(binding = 5) readonly buffer B5 { float clip; };

void main() {
  if (clip == 0.0) return; // a step that is left out
  float keep = 1.0 - lr * value * weight_decay; // value is the tensor's multiplier of the decay
  EACH(i) {
    float gi = clip * g[i];
    float mi = beta1 * m[i] + (1.0 - beta1) * gi;
    float vi = beta2 * v[i] + (1.0 - beta2) * gi * gi;
    m[i] = mi;
    v[i] = vi;
    p[i] = p[i] * keep - lr * (mi / bias1) / (sqrt(vi / bias2) + eps);
  }
}
