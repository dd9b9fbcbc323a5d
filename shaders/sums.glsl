// Sums of long rows. Needs rows.glsl.

const uint RUN = 32;

// The sum over an interval of TERM(i) by a row's lanes, in two levels: runs of RUN terms, then the runs. Its rounding error grows with the
// number of runs a lane has, not with the terms. `var` holds the result in every lane.
#define ROW_SUM(var, from, to, TERM) \
  { \
    float total_ = 0.0; \
    for (uint base_ = (from) + lane(); base_ < (to); base_ += RUN * LANES) { \
      float run_ = 0.0; \
      uint stop_ = min((to), base_ + RUN * LANES); \
      for (uint i = base_; i < stop_; i += LANES) run_ += TERM(i); \
      total_ += run_; \
    } \
    var = row_sum(total_); \
  }
