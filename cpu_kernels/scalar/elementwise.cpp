// Norms, activations, positions, softmax: the definition.
#include <cmath>
#include <cstring>

#include "cpu_kernels/scalar/definitions.h"
#include "cpu_kernels/scalar/half.h"
#include "cpu_kernels/scalar/sums.h"

namespace kvasir::kernels::scalar {
namespace {

uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

float from_bits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

constexpr uint32_t kSmallestGroup = (127 - 120) << 23;  // bits of 2^-120

}  // namespace

// exp(x) = 2^n * exp(r), n = x / ln 2 rounded, |r| <= ln 2 / 2, exp(r) = 1 + r + r^2 * P(r).
// Coefficients of P: Cephes expf. At most 1 ULP from the true value over [-87.3, 88.7].
float exp(float x) {
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = std::fmaf(x, 1.44269504088896341F, kRound);
  const float n = shifted - kRound;
  float r = std::fmaf(n, -0.693359375F, x);
  r = std::fmaf(n, 2.12194440e-4F, r);
  float p = 1.9875691500e-4F;
  p = std::fmaf(p, r, 1.3981999507e-3F);
  p = std::fmaf(p, r, 8.3334519073e-3F);
  p = std::fmaf(p, r, 4.1665795894e-2F);
  p = std::fmaf(p, r, 1.6666665459e-1F);
  p = std::fmaf(p, r, 5.0000001201e-1F);
  const float y = std::fmaf(p, r * r, r) + 1.0F;
  float result = from_bits(bits_of(y) + (bits_of(shifted) << 23));  // n in the low bits, times 2^23
  if (x < -87.3F) result = 0.0F;
  if (x > 88.7228F) result = INFINITY;
  if (x != x) result = x;
  return result;
}

// |x| < 0.625: x + x * z * P(z), z = x^2 (coefficients: Cephes tanhf); else 1 - 2 / (exp(2|x|) + 1).
float tanh(float x) {
  const float magnitude = std::fabs(x);
  const float z = x * x;
  float p = -5.70498872745e-3F;
  p = std::fmaf(p, z, 2.06390887954e-2F);
  p = std::fmaf(p, z, -5.37397155531e-2F);
  p = std::fmaf(p, z, 1.33314422036e-1F);
  p = std::fmaf(p, z, -3.33332819422e-1F);
  const float small = std::fmaf(p * z, x, x);
  const float large = 1.0F - 2.0F / (exp(magnitude + magnitude) + 1.0F);
  if (magnitude < 0.625F) return small;
  return from_bits(bits_of(large) | (bits_of(x) & 0x80000000U));
}

namespace {

/// Codes of one group of n values: codes[k] = ties-to-even(x[k] * (127 / absmax)). Returns the scale.
float quantize_group(const float* values, int64_t n, int8_t* codes) {
  // The largest magnitude as an integer: a NaN is larger than everything and stays.
  uint32_t largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t magnitude = bits_of(values[i]) & 0x7FFFFFFFU;
    if (magnitude > largest) largest = magnitude;
  }
  // Below 2^-120 the group counts as zeros: 127 / absmax overflows from 2^-121 down, and zeros times
  // infinity would become codes of -127.
  const bool nothing = largest < kSmallestGroup;
  const float absmax = nothing ? 0.0F : from_bits(largest);
  const float inverse = nothing ? 0.0F : 127.0F / absmax;
  for (int64_t i = 0; i < n; ++i) {
    float scaled = values[i] * inverse;
    scaled = scaled > -127.0F ? scaled : -127.0F;  // NaN becomes -127; its scale says NaN
    scaled = scaled > 127.0F ? 127.0F : scaled;
    codes[i] = static_cast<int8_t>(std::nearbyintf(scaled));
  }
  return absmax / 127.0F;
}

int32_t sum_of(const int8_t* codes, int64_t n) {
  int32_t sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += codes[i];
  return sum;
}

}  // namespace

void quantize(const float* x, int64_t n, int8_t* codes, ActivationGroup* groups) {
  for (int64_t g = 0; g < n / kGroupColumns; ++g) {
    const float scale = quantize_group(x + g * kGroupColumns, kGroupColumns, codes + g * kGroupColumns);
    const int32_t sum = sum_of(codes + g * kGroupColumns, kGroupColumns);
    groups[g] = {scale, scale * static_cast<float>(sum), sum, 0};
  }
}

void quantize_wide(const float* x, int64_t n, int8_t* codes, WideActivationGroup* groups) {
  for (int64_t g = 0; g < n / kWideGroupColumns; ++g) {
    int8_t* group_codes = codes + g * kWideGroupColumns;
    WideActivationGroup& group = groups[g];
    group = {};
    group.scale = quantize_group(x + g * kWideGroupColumns, kWideGroupColumns, group_codes);
    group.sum = sum_of(group_codes, kWideGroupColumns);
    for (int64_t i = 0; i < 8; ++i)
      group.sums32[i] = static_cast<int16_t>(sum_of(group_codes + 32 * i, 32));
    for (int64_t i = 0; i < 16; ++i)
      group.sums16[i] = static_cast<int16_t>(sum_of(group_codes + 16 * i, 16));
  }
}

void rms_norm(const float* x, const float* weight, float epsilon, float* y, int64_t n) {
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i % kLanes] = std::fmaf(x[i], x[i], lanes[i % kLanes]);
  const float mean = sum_lanes(lanes) / static_cast<float>(n);
  const float r = 1.0F / std::sqrt(mean + epsilon);
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] * r) * weight[i];
}

void swiglu(const float* gate, const float* up, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = gate[i] / (1.0F + exp(-gate[i])) * up[i];
}

void geglu(const float* gate, const float* up, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const float g = gate[i];
    const float u = 0.797884560802865356F * std::fmaf(0.044715F * (g * g), g, g);
    y[i] = 0.5F * g * (1.0F + tanh(u)) * up[i];
  }
}

void add(const float* a, const float* b, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

void rope(float* x, int64_t n_heads, int64_t head_stride, int64_t rotary_dim, const float* cos,
          const float* sin, RopePairs pairs) {
  const int64_t half = rotary_dim / 2;
  for (int64_t head = 0; head < n_heads; ++head) {
    float* h = x + head * head_stride;
    for (int64_t i = 0; i < half; ++i) {
      float& a = pairs == RopePairs::interleaved ? h[2 * i] : h[i];
      float& b = pairs == RopePairs::interleaved ? h[2 * i + 1] : h[i + half];
      const float a0 = a;
      a = std::fmaf(a0, cos[i], -(b * sin[i]));
      b = std::fmaf(b, cos[i], a0 * sin[i]);
    }
  }
}

void softmax(float* x, int64_t n) {
  float largest = x[0];
  for (int64_t i = 1; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) {
    x[i] = exp(x[i] - largest);
    lanes[i % kLanes] = lanes[i % kLanes] + x[i];
  }
  const float sum = sum_lanes(lanes);
  for (int64_t i = 0; i < n; ++i) x[i] = x[i] / sum;
}

int64_t argmax(const float* x, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i) {
    if (x[i] > x[best]) best = i;
  }
  return best;
}

bool all_finite(const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if ((bits_of(x[i]) & 0x7F800000U) == 0x7F800000U) return false;
  }
  return true;
}

}  // namespace kvasir::kernels::scalar
