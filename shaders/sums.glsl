// Sums by one group of 256 threads. Needs rows.glsl, with LANES at its default.

const uint RUN = 32;

// The sum over an interval of TERM(i), in two levels: runs of RUN terms, then the runs. Its rounding error grows with the number of runs a
// thread has, not with the terms. `var` is what holds the result in every thread.
#define GROUP_SUM(var, from, to, TERM) \
  { \
    float total_ = 0.0; \
    for (uint base_ = (from) + gl_LocalInvocationIndex; base_ < (to); base_ += RUN * THREADS) { \
      float run_ = 0.0; \
      uint stop_ = min((to), base_ + RUN * THREADS); \
      for (uint i = base_; i < stop_; i += THREADS) run_ += TERM(i); \
      total_ += run_; \
    } \
    var = row_sum(total_); \
  }
