// The one kernel of this package's own tests: c = (a + b) or a constant, after some idle work.
#version 450

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 1) const uint MODE = 0; // 0: c = a + b, 1: c = value

layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) buffer C { float c[]; };

layout(push_constant) uniform Push {
  uint n;
  float value;
  uint spin;
};

void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i >= n) return;
  float v = value;
  if (MODE == 0) v = a[i] + b[i];
  uint h = i + 1; // xorshift never gives 0 again, but no compiler knows
  for (uint k = 0; k < spin; k++) {
    h ^= h << 13;
    h ^= h >> 17;
    h ^= h << 5;
  }
  c[i] = h == 0 ? -v : v;
}
