// Rows spread over lanes: LANES neighbouring threads, a power of two, work on one row, so that short rows share a group.
layout(local_size_x = THREADS) in;
layout(constant_id = 0) const uint LANES = THREADS;

const uint SLOTS = THREADS / LANES; // rows at once
const uint PARTS = LANES < 16 ? LANES : 16; // of a row's sum

shared vec2 row_lanes[THREADS];
shared vec2 row_parts[THREADS];

uint lane() { return gl_LocalInvocationIndex % LANES; }
uint slot() { return gl_LocalInvocationIndex / LANES; }

// Reduces a row's lanes in two steps, lanes to PARTS and PARTS to one, with a barrier each: barriers are what a reduction costs. Two arrays,
// so that the next one may begin while others still read. Every thread of the group must call it.
#define ROW_REDUCE(v, COMBINE) \
  row_lanes[gl_LocalInvocationIndex] = v; \
  barrier(); \
  if (lane() < PARTS) { \
    for (uint j = lane() + PARTS; j < LANES; j += PARTS) v = COMBINE(v, row_lanes[slot() * LANES + j]); \
    row_parts[slot() * PARTS + lane()] = v; \
  } \
  barrier(); \
  v = row_parts[slot() * PARTS]; \
  for (uint j = 1; j < PARTS; j++) v = COMBINE(v, row_parts[slot() * PARTS + j]);

#define ADD(a, b) ((a) + (b))
#define LARGER(a, b) mix(a, b, greaterThan(b, a)) // a NaN in b is passed over

vec2 row_sum(vec2 v) {
  ROW_REDUCE(v, ADD)
  return v;
}
float row_sum(float v) { return row_sum(vec2(v, 0.0)).x; }

float row_max(float f) {
  vec2 v = vec2(f);
  ROW_REDUCE(v, LARGER)
  return v.x;
}
vec2 row_max(vec2 v) {
  ROW_REDUCE(v, LARGER)
  return v;
}

// The power of two that a row is divided by, given its largest magnitude, so that sums of its squares neither overflow nor vanish: the largest is 2^-27 to 2^28
// then. Its reciprocal, and products with numbers near 1, are normal.
int row_exponent(float largest) { return clamp(int(floatBitsToUint(largest) >> 23) - 127, -100, 100); }

// 2^e, e from -126 to 127.
float power_of_two(int e) { return uintBitsToFloat(uint(e + 127) << 23); }
