// Three sums over a tensor, of chunks of THREADS times EACH elements, a workgroup each. Needs rows.glsl, with a row to the whole group; the buffer `chunks` has
// three sums of each.
layout(push_constant) uniform Push {
  uint count; // elements
  uint first; // chunk
#ifdef CHUNKS_DECAY
  float decay;
#endif
};

const uint EACH = 64;

// For each element i of this thread.
#define EACH_OF_CHUNK(i) \
  uint from_ = group_index() * (THREADS * EACH); \
  if (from_ >= count) return; /* the whole group */ \
  for (uint i = from_ + gl_LocalInvocationIndex, end_ = min(count, from_ + THREADS * EACH); i < end_; i += THREADS)

#define PUT_CHUNK(s) \
  s.xy = row_sum(s.xy); \
  s.z = row_sum(s.z); \
  if (gl_LocalInvocationIndex != 0u) return; \
  uint at_ = 3u * (first + group_index()); \
  chunks[at_] = s.x; \
  chunks[at_ + 1u] = s.y; \
  chunks[at_ + 2u] = s.z;
