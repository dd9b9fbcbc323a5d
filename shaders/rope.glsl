// The rotations of RoPE, by integers: an angle is a fraction of a turn in fixed point, so reducing it is what unsigned overflow does, and
// position 10^5 is as exact as position 1. Frequencies are Q0.64 (x the upper word): t times one is then right to 2^-32 turns.
//
// powers[b] = theta^(-2^(b+1)/h), so that the pair i's frequency theta^(-2i/h) / 2π is a product over the bits of i.

const uint MAX_PAIRS = 128;

shared uvec2 frequencies[MAX_PAIRS];

// The upper 64 bits of a product.
uvec2 mul_q64(uvec2 a, uvec2 b) {
  uint hh, hl, mh, ml, nh, nl, lh, ll, carry, c;
  umulExtended(a.x, b.x, hh, hl);
  umulExtended(a.x, b.y, mh, ml);
  umulExtended(a.y, b.x, nh, nl);
  umulExtended(a.y, b.y, lh, ll);
  uint mid = uaddCarry(ml, nl, carry);
  uaddCarry(mid, lh, c);
  uint upper = carry + c; // carries into hl
  uint low = uaddCarry(hl, mh, carry);
  low = uaddCarry(low, nh, c);
  hh += carry + c;
  low = uaddCarry(low, upper, carry);
  return uvec2(hh + carry, low);
}

uvec2 frequency(uint i, uvec4 p01, uvec4 p23, uvec4 p45, uvec2 p6) {
  uvec2 f = uvec2(0x28be60dbu, 0x9391054au); // 1 / 2π
  if ((i & 1u) != 0u) f = mul_q64(f, p01.xy);
  if ((i & 2u) != 0u) f = mul_q64(f, p01.zw);
  if ((i & 4u) != 0u) f = mul_q64(f, p23.xy);
  if ((i & 8u) != 0u) f = mul_q64(f, p23.zw);
  if ((i & 16u) != 0u) f = mul_q64(f, p45.xy);
  if ((i & 32u) != 0u) f = mul_q64(f, p45.zw);
  if ((i & 64u) != 0u) f = mul_q64(f, p6);
  return f;
}

// cos and sin of t turns times f; error 1e-7.
vec2 rotation(uint t, uvec2 f) {
  uint carry, unused;
  umulExtended(t, f.y, carry, unused);
  uint turn = t * f.x + carry; // in 2^-32 turns
  uint quadrant = (turn + 0x20000000u) >> 30;
  float a = float(int(turn - (quadrant << 30))) * 1.46291808e-9; // 2π / 2^32; -π/4 to π/4
  float z = a * a;
  float s = ((-0.000195172353 * z + 0.008332178) * z - 0.166666552) * z * a + a;
  float c = ((2.44383791e-05 * z - 0.00138873665) * z + 0.0416666456) * z * z - 0.5 * z + 1.0;
  vec2 v = (quadrant & 1u) != 0u ? vec2(-s, c) : vec2(c, s);
  return (quadrant & 2u) != 0u ? -v : v;
}
