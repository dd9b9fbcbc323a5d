// Rows spread over lanes: LANES neighbouring threads, a power of two, work on one row, so that short rows share a group.
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint LANES = 256;

const uint THREADS = 256;
const uint SLOTS = THREADS / LANES; // rows at once

shared vec2 row_scratch[THREADS];

uint lane() { return gl_LocalInvocationIndex % LANES; }
uint slot() { return gl_LocalInvocationIndex / LANES; }

// The sum over a row's lanes, by halves. Every thread of the group must call it.
vec2 row_sum(vec2 v) {
  uint i = gl_LocalInvocationIndex;
  row_scratch[i] = v;
  for (uint s = LANES / 2; s > 0; s >>= 1) {
    barrier();
    if (lane() < s) row_scratch[i] += row_scratch[i + s];
  }
  barrier();
  v = row_scratch[i - lane()];
  barrier();
  return v;
}
float row_sum(float v) { return row_sum(vec2(v, 0.0)).x; }
