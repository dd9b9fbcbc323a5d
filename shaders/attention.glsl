// Tiles for fused attention and its gradients (Dao 2022): TILE queries against TILE keys, 4 TILE threads. TILE is 32, or 16 where there is less
// shared memory than 32 KiB or fewer threads.
//
// A product of tiles, s[row][col] = left[row]·right[col], goes over the head's elements in chunks of 64, both operands as vec4 in shared
// memory. A thread has rows 4 * (tid / 16) + 0..3, as the components of a vec4, and columns tid % 16, and 16 more if TILE is 32. For the second product,
// out[row] += sum over col of weight[row][col] right[col], weights lie in shared memory by columns, and a thread has the same four
// rows and the elements 4 * (tid % 16) + 0..3 of each chunk.
layout(local_size_x = TILE * 4) in;
layout(constant_id = 0) const uint HEAD_DIM = 64; // 1 to 256
layout(constant_id = 1) const bool SOFT_CAP = false;
layout(constant_id = 2) const bool HAS_SCALE = false; // the scale is an operand
layout(push_constant) uniform Push {
  uint positions;
  uint heads;
  uint kv_heads;
  uint tiles; // of TILE positions
  uint count; // tiles of all heads of the batch
  float scale_value;
  float cap;
};

#undef THREADS
#define THREADS (TILE * 4)
const uint COLUMNS = TILE / 16; // of a thread
const uint CHUNK = 64;
const uint CHUNKS = 4;
const uint WIDTH = HEAD_DIM < CHUNK ? (HEAD_DIM + 3) / 4 * 4 : CHUNK; // elements of a chunk in shared memory
const uint STRIDE = CHUNK / 4 + 1; // vec4s a row; odd, so that rows start in different banks
const uint WEIGHTS = TILE / 4 + 1; // vec4s a column

shared vec4 left[TILE * STRIDE];
shared vec4 right[TILE * STRIDE];

uint tid = gl_LocalInvocationIndex;
uint row4 = tid / 16; // the thread's rows are 4 * row4 + 0..3
uint col = tid % 16;

// An E in shared memory, at element d of a row.
#ifdef NARROW
#define SET(row, d, v) \
  row[(d) % 4] = (v).x; \
  row[(d) % 4 + 1] = (v).y;
#define AT(row, d) vec2(row[(d) % 4], row[(d) % 4 + 1])
#else
#define SET(row, d, v) row[(d) % 4] = v;
#define AT(row, d) row[(d) % 4]
#endif

// Loads a chunk of TILE rows of a tensor (B, T, heads, HEAD_DIM), zero past its ends; `base` is the element where the first row starts.
#define LOAD(dst, src, operand, base, stride, first, chunk) \
  [[dont_unroll]] for (uint i_ = tid; i_ < TILE * WIDTH / PER_E; i_ += THREADS) { \
    uint r_ = i_ / (WIDTH / PER_E); \
    uint d_ = i_ % (WIDTH / PER_E) * PER_E; \
    uint e_ = (chunk) * CHUNK + d_; \
    E v_ = E(0.0); \
    if ((first) + r_ < positions && e_ < HEAD_DIM) v_ = GET(src, operand, ((base) + r_ * (stride) + e_) / PER_E); \
    SET(dst[r_ * STRIDE + d_ / 4], d_, v_) \
  }

void product(inout vec4 s[COLUMNS], uint chunk) {
  uint end = (min(HEAD_DIM - chunk * CHUNK, CHUNK) + 3) / 4;
  [[dont_unroll]] for (uint d = 0; d < end; d++) {
    vec4 b[COLUMNS];
    [[unroll]] for (uint j = 0; j < COLUMNS; j++) b[j] = right[(col + 16 * j) * STRIDE + d];
    [[unroll]] for (uint i = 0; i < 4; i++) {
      vec4 a = left[(row4 * 4 + i) * STRIDE + d];
      [[unroll]] for (uint j = 0; j < COLUMNS; j++)
        s[j][i] = fma(a.w, b[j].w, fma(a.z, b[j].z, fma(a.y, b[j].y, fma(a.x, b[j].x, s[j][i]))));
    }
  }
}

// The logit of scale q·k, and its slope there.
vec4 soft_cap(vec4 s, out vec4 slope) {
  slope = vec4(1.0);
  if (SOFT_CAP) {
    vec4 t = vec4(tanh_(s.x / cap), tanh_(s.y / cap), tanh_(s.z / cap), tanh_(s.w / cap));
    s = cap * t;
    slope = (1.0 - t) * (1.0 + t);
  }
  return s;
}

// acc[i] += sum over columns first..end-1 of the weights of the thread's row i times the column's elements.
#define ACCUMULATE(acc, weights, first, end) \
  [[dont_unroll]] for (uint u_ = (first); u_ < (end); u_++) { \
    vec4 w_ = weights[u_ * WEIGHTS + row4]; \
    vec4 v_ = right[u_ * STRIDE + col]; \
    [[unroll]] for (uint i_ = 0; i_ < 4; i_++) acc[i_] = fma(vec4(w_[i_]), v_, acc[i_]); \
  }

// The four columns of the diagonal that are the thread's own rows: row i sees columns up to i if UPTO, from i otherwise. The others are left out,
// not weighted by 0, which a NaN or an inf there would outlive.
#define ACCUMULATE_DIAGONAL(acc, weights, UPTO) \
  [[unroll]] for (uint j_ = 0; j_ < 4; j_++) { \
    vec4 w_ = weights[(row4 * 4 + j_) * WEIGHTS + row4]; \
    vec4 v_ = right[(row4 * 4 + j_) * STRIDE + col]; \
    [[unroll]] for (uint i_ = 0; i_ < 4; i_++) \
      if (UPTO ? j_ <= i_ : j_ >= i_) acc[i_] = fma(vec4(w_[i_]), v_, acc[i_]); \
  }

// Columns that lie wholly past the tensor's end have weight 0 and elements 0.
#define ACCUMULATE_QUERIES(acc, weights, diagonal) \
  { \
    ACCUMULATE(acc, weights, 0, diagonal ? row4 * 4 : TILE) \
    if (diagonal) ACCUMULATE_DIAGONAL(acc, weights, true) \
  }
#define ACCUMULATE_KEYS(acc, weights, diagonal) \
  { \
    if (diagonal) ACCUMULATE_DIAGONAL(acc, weights, false) \
    ACCUMULATE(acc, weights, diagonal ? row4 * 4 + 4 : 0, TILE) \
  }

// Writes a chunk of every thread's four rows of a tensor, times a factor of each, through shared memory.
#define STORE(dst, operand, acc, factor, base, stride, first, chunk) \
  barrier(); \
  [[unroll]] for (uint i_ = 0; i_ < 4; i_++) left[(row4 * 4 + i_) * STRIDE + col] = acc[i_] * (factor)[i_]; \
  barrier(); \
  [[dont_unroll]] for (uint i_ = tid; i_ < TILE * WIDTH / PER_E; i_ += THREADS) { \
    uint r_ = i_ / (WIDTH / PER_E); \
    uint d_ = i_ % (WIDTH / PER_E) * PER_E; \
    uint e_ = (chunk) * CHUNK + d_; \
    if ((first) + r_ < positions && e_ < HEAD_DIM) \
      PUT(dst, operand, ((base) + r_ * (stride) + e_) / PER_E, AT(left[r_ * STRIDE + d_ / 4], d_)) \
  }

// Written out, not a loop, so that accumulators have constant indices and stay in registers; a driver drops what HEAD_DIM does not need.
#define EACH_CHUNK(BODY) \
  { BODY(0) } \
  if (HEAD_DIM > CHUNK) { BODY(1) } \
  if (HEAD_DIM > 2 * CHUNK) { BODY(2) } \
  if (HEAD_DIM > 3 * CHUNK) { BODY(3) }
