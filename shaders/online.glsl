// log-sum-exp in one pass (Milakov & Gimelshein 2018): the largest so far, and the sum of exp(x - largest). Needs math.glsl and rows.glsl.

const vec2 NOTHING = vec2(LOWEST, 0.0);

// A NaN is never the largest, but the sum keeps it; with an inf the sum is NaN, as exp(inf - inf) is (which an optimiser may take for 1).
vec2 online_add(vec2 a, float x) {
  if (x > a.x) return vec2(x, a.y * exp_(a.x - x) + uintBitsToFloat(is_finite(x) ? 0x3f800000u : 0x7fc00000u));
  return vec2(a.x, a.y + exp_(x - a.x));
}

// Merges a row's lanes. Every thread of the group must call it.
vec2 row_merge(vec2 v) {
  float top = row_max(v.x);
  return vec2(top, row_sum(v.y * exp_(v.x - top)));
}
