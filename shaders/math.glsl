// Elementary functions with stated errors: Vulkan lets a driver's exp, log, sin and tanh be far worse, and each driver's differ.
// The polynomials are minimax fits (Remez); "error" is theirs, to which rounding adds an ulp or two. NaN comes out as NaN by
// arithmetic, never through a comparison that an optimiser may take for a min or a max.

// e^x; relative error 3e-9. 0 below -104, inf above 88.73.
vec4 exp_(vec4 x) {
  vec4 k = clamp(floor(x * 1.44269504 + 0.5), -150.0, 129.0); // beyond 129 the polynomial grows past the largest float
  // ln 2 in two parts, the first of 9 bits: k times it is exact, with or without fused multiply-add.
  vec4 r = (x - k * 0.693359375) + k * 2.12194440e-4;
  vec4 p = 0.00139505416 * r + 0.00836891774;
  p = p * r + 0.041666206;
  p = p * r + 0.166665182;
  p = p * r + 0.5;
  p = p * r * r + r + 1.0;
  // 2^k in two factors, each a normal number.
  ivec4 e = ivec4(k);
  ivec4 h = e >> 1;
  p = p * uintBitsToFloat(uvec4(h + 127) << 23) * uintBitsToFloat(uvec4(e - h + 127) << 23);
  return mix(p, vec4(0.0), lessThan(x, vec4(-104.0)));
}
float exp_(float x) { return exp_(vec4(x)).x; }

// log x for normal x > 0; relative error 6e-9. log 0 = -inf; inf and NaN come out.
float log_(float x) {
  uint bits = floatBitsToUint(x);
  // x = m 2^k with m in [sqrt(1/2), sqrt(2))
  uint shifted = bits - 0x3f3504f3u;
  float k = float(int(shifted) >> 23);
  float f = uintBitsToFloat((shifted & 0x007fffffu) + 0x3f3504f3u) - 1.0;
  float p = -0.0763565376;
  p = p * f + 0.127633259;
  p = p * f - 0.131605819;
  p = p * f + 0.142015532;
  p = p * f - 0.166232988;
  p = p * f + 0.200012341;
  p = p * f - 0.250008225;
  p = p * f + 0.333333313;
  float f2 = f * f;
  float y = (p * f * f2 - k * 2.12194440e-4 - 0.5 * f2) + f + k * 0.693359375;
  if (bits == 0u) return uintBitsToFloat(0xff800000u);
  return is_finite(x) ? y : x;
}

// 1/sqrt(x), with a Newton step over the driver's (2 ulp).
float rsqrt_(float x) {
  float r = inversesqrt(x);
  float s = 1.5 - 0.5 * x * r * r;
  return x < 1e38 ? r * s : r;
}

// The logistic function of x (first) and of -x (second), neither by a subtraction.
vec2 sigmoids(float x) {
  float e = exp_(-abs(x));
  float large = 1.0 / (1.0 + e);
  float small = e * large;
  return x < 0.0 ? vec2(small, large) : vec2(large, small);
}

// tanh x; the polynomial, for small x, has a relative error of 4e-9.
float tanh_(float x) {
  float a = abs(x);
  float z = x * x;
  float p = -0.00571704516;
  p = p * z + 0.020650588;
  p = p * z - 0.0537434965;
  p = p * z + 0.133314908;
  p = p * z - 0.333332837;
  float t = 1.0 - 2.0 / (exp_(2.0 * a) + 1.0);
  return a < 0.625 ? x + x * z * p : x < 0.0 ? -t : t;
}

// exp(-x²/2), with the square's rounding error put right: it would be x²/2 times as large in the result.
float gauss(float x) {
  if (abs(x) > 14.5) return 0.0; // below the smallest float; and inf - inf is avoided
  float head = uintBitsToFloat(floatBitsToUint(x) & 0xfffff000u); // 12 bits: its square is exact
  return exp_(-0.5 * head * head) * exp_(-0.5 * (x - head) * (x + head));
}

// Φ(-x) for x >= 1, given gauss(x): Mills' ratio by polynomials; relative error 6e-8.
float normal_tail(float x, float g) {
  if (x < 3.0) {
    float y = x - 2.0;
    float p = 9.96299605e-06;
    p = p * y - 4.2049789e-05;
    p = p * y + 0.000145340528;
    p = p * y - 0.000546557945;
    p = p * y + 0.00197606464;
    p = p * y - 0.00670535583;
    p = p * y + 0.021312749;
    p = p * y - 0.0627381951;
    p = p * y + 0.168101996;
    return g * p;
  }
  float t = 1.0 / x;
  float z = t * t;
  float p = 199.409576;
  p = p * z - 106.226028;
  p = p * z + 27.7760906;
  p = p * z - 5.5078845;
  p = p * z + 1.18771243;
  p = p * z - 0.398858994;
  p = p * z + 0.398942024;
  return g * t * p;
}

// The normal distribution function Φ(x), given gauss(x); accurate relative to itself on both sides.
float normal_cdf(float x, float g) {
  float a = abs(x);
  if (a < 1.0) {
    float z = x * x;
    float p = -7.66467929e-06;
    p = p * z + 0.000113512659;
    p = p * z - 0.00118635304;
    p = p * z + 0.00997333135;
    p = p * z - 0.0664903596;
    p = p * z + 0.398942292;
    return 0.5 + x * p;
  }
  float q = normal_tail(a, g);
  return x < 0.0 ? q : 1.0 - q;
}
