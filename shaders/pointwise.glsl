// Elementwise kernels: a group covers 4 times THREADS consecutive elements.
layout(local_size_x = THREADS) in;
layout(push_constant) uniform Push {
  uint count; // elements
  float value; // the operator's constant, where it has one
};

const uint PER_THREAD = 4;

uint element(uint j) { return group_index() * (THREADS * PER_THREAD) + j * THREADS + gl_LocalInvocationIndex; }

// For each element i of this thread.
#define EACH(i) \
  [[dont_unroll]] for (uint j_ = 0, i = element(0); j_ < PER_THREAD; j_++, i = element(j_)) if (i < count)
