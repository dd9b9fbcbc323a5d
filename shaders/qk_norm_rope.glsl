// What qk_norm_rope and its gradient share. A lane has at most PAIRS pairs of a head, i and i + half_dim, or in NARROW kernels pairs of two neighbours i.

const uint NO_NORM = 0, RMS = 1, LAYER = 2, L2 = 3;
layout(constant_id = 1) const uint NORM = 0;
layout(constant_id = 2) const bool HAS_GAIN = false;
layout(push_constant) uniform Push {
  uvec4 powers01, powers23, powers45;
  uvec2 power6;
  uint row_count; // rows are heads of positions, in order (b, t, head)
  uint half_dim; // pairs of a head
  uint heads;
  uint positions;
  uint first_row; // the number of row 0, where the tensor is a part of a larger one
  uint span; // rows a group
  float inv_n; // 1 over what the squares' sum is divided by: the head's length, or 1 for l2
  float eps;
};

const uint PAIRS = 2 / PER_E;

// The elements i and i + half_dim of pairs.
struct Pair {
  E a, b;
};

// cos and sin of the angles of a lane's pairs.
Pair turn(uint position, uint i) {
#ifdef NARROW
  vec2 s = rotation(position, frequencies[2 * i]);
  vec2 t = rotation(position, frequencies[2 * i + 1]);
  return Pair(vec2(s.x, t.x), vec2(s.y, t.y));
#else
  vec2 s = rotation(position, frequencies[i]);
  return Pair(s.x, s.y);
#endif
}

void make_frequencies() {
  uint i = gl_LocalInvocationIndex;
  if (i < half_dim) frequencies[i] = frequency(i, powers01, powers23, powers45, power6);
  barrier();
}

// The mean and reciprocal root of a row that is spread over its lanes. Every thread must call it.
vec2 standardizer(Pair x[PAIRS], uint end) {
  if (NORM == NO_NORM) return vec2(0.0, 1.0);
  float mean = 0.0;
  if (NORM == LAYER) {
    float s = 0.0;
    [[unroll]] for (uint k = 0; k < PAIRS; k++) s += TOTAL(x[k].a + x[k].b); // zeros where there is no pair
    mean = row_sum(s) * inv_n;
  }
  float s = 0.0;
  [[unroll]] for (uint k = 0; k < PAIRS; k++)
    if (k * LANES + lane() < end) {
      E a = x[k].a - mean;
      E b = x[k].b - mean;
      s += TOTAL(a * a + b * b);
    }
  return vec2(mean, rsqrt_(row_sum(s) * inv_n + eps));
}
