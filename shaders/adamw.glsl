// The step of AdamW on one element (Loshchilov & Hutter 2019), and what it needs.
layout(binding = 4) readonly buffer B4 { float lr, beta1, beta2, eps, weight_decay, bias1, bias2; };
layout(binding = 5) readonly buffer B5 { float clip; };

// decay is the tensor's multiplier of the weight decay. A clip of 0 is a step that is left out.
#define ADAMW_BEGIN(decay) \
  if (clip == 0.0) return; \
  float keep_ = 1.0 - lr * (decay) * weight_decay;

// The moments after the step, m_ and v_; then what it takes off the parameter beside the decay.
#define ADAMW_MOMENTS(m, v, g) \
  float g_ = clip * (g); \
  float m_ = beta1 * (m) + (1.0 - beta1) * g_; \
  float v_ = beta2 * (v) + (1.0 - beta2) * g_ * g_;
#define ADAMW_STEP lr * (m_ / bias1) / (sqrt(v_ / bias2) + eps)

#define ADAMW(p, m, v, g) \
  ADAMW_MOMENTS(m, v, g) \
  m = m_; \
  v = v_; \
  p = (p) * keep_ - ADAMW_STEP;
