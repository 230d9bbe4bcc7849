// Norms, activations, positions, quantising, softmax.
#pragma once

#include <cmath>

#include "cpu_kernels/generic/exp.h"
#include "cpu_kernels/kernels.h"
#include "cpu_kernels/simd/lanes.h"

namespace kvasir::kernels::generic {

template <class V>
struct Elementwise {
  using F = typename V::F;

  /// use(index, count): whole groups of 16 and then the rest.
  template <class Whole, class Rest>
  KVASIR_INLINE void for_lanes(int64_t n, const Whole& whole, const Rest& rest) {
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) whole(i);
    if (i < n) rest(i, n - i);
  }

  /// Bits of 2^-120: below, 127 / absmax may overflow, and the group counts as zeros.
  static constexpr uint32_t kSmallestGroup = (127 - 120) << 23;

  /// 127 / absmax and absmax / 127 of a group whose largest magnitude has these bits.
  struct GroupScale {
    explicit GroupScale(uint32_t bits) {
      const bool nothing = bits < kSmallestGroup;
      float absmax = 0;
      if (!nothing) __builtin_memcpy(&absmax, &bits, sizeof(absmax));
      scale = absmax / 127.0F;
      inverse = nothing ? 0.0F : 127.0F / absmax;
    }
    float scale;
    float inverse;
  };

  /// Codes of 32 values; returns their sum.
  KVASIR_INLINE int32_t store_group(const F& a, const F& b, float inverse, int8_t* codes) {
    const F factor = F::broadcast(inverse);
    const F most = F::broadcast(127.0F);
    const F least = F::broadcast(-127.0F);
    return V::store_codes(codes, F::smaller(F::larger(F::multiply(a, factor), least), most),
                          F::smaller(F::larger(F::multiply(b, factor), least), most));
  }

  static void quantize(const float* x, int64_t n, int8_t* codes, ActivationGroup* groups) {
    for (int64_t g = 0; g < n / kGroupColumns; ++g) {
      const F a = F::load(x + g * kGroupColumns);
      const F b = F::load(x + g * kGroupColumns + kLanes);
      const GroupScale group(V::largest_magnitude(a, b));
      const int32_t sum = store_group(a, b, group.inverse, codes + g * kGroupColumns);
      groups[g].scale = group.scale;
      groups[g].scaled_sum = group.scale * static_cast<float>(sum);
      groups[g].sum = sum;
      groups[g].unused = 0;
    }
  }

  static void quantize_wide(const float* x, int64_t n, int8_t* codes, WideActivationGroup* groups) {
    for (int64_t g = 0; g < n / kWideGroupColumns; ++g, x += kWideGroupColumns) {
      uint32_t bits = 0;
      for (int64_t i = 0; i < kWideGroupColumns; i += 32) {
        const uint32_t here = V::largest_magnitude(F::load(x + i), F::load(x + i + 16));
        bits = here > bits ? here : bits;
      }
      const GroupScale scale(bits);
      WideActivationGroup& group = groups[g];
      group.scale = scale.scale;
      group.sum = 0;
      group.unused[0] = group.unused[1] = 0;
      for (int64_t i = 0; i < 8; ++i) {
        int8_t* at = codes + g * kWideGroupColumns + 32 * i;
        const int32_t sum =
            store_group(F::load(x + 32 * i), F::load(x + 32 * i + 16), scale.inverse, at);
        int32_t first = 0;
        for (int64_t c = 0; c < 16; ++c) first += at[c];
        group.sum += sum;
        group.sums32[i] = static_cast<int16_t>(sum);
        group.sums16[2 * i] = static_cast<int16_t>(first);
        group.sums16[2 * i + 1] = static_cast<int16_t>(sum - first);
      }
    }
  }

  static void rms_norm(const float* x, const float* weight, float epsilon, float* y, int64_t n) {
    F squares = F::broadcast(0);
    for_lanes(
        n,
        [&](int64_t i) {
          const F v = F::load(x + i);
          squares = F::fma(v, v, squares);
        },
        [&](int64_t i, int64_t count) {
          const F v = F::load_first(x + i, count);  // missing lanes add 0 * 0
          squares = F::fma(v, v, squares);
        });
    const float mean = F::sum(squares) / static_cast<float>(n);
    const F r = F::broadcast(1.0F / __builtin_sqrtf(mean + epsilon));
    for_lanes(
        n,
        [&](int64_t i) {
          F::store(y + i, F::multiply(F::multiply(F::load(x + i), r), F::load(weight + i)));
        },
        [&](int64_t i, int64_t count) {
          F::store_first(y + i,
                         F::multiply(F::multiply(F::load_first(x + i, count), r),
                                     F::load_first(weight + i, count)),
                         count);
        });
  }

  KVASIR_INLINE F silu_gated(const F& gate, const F& up) {
    const F minus = F::subtract(F::broadcast(-0.0F), gate);
    return F::multiply(F::divide(gate, F::add(F::broadcast(1.0F), exp<V>(minus))), up);
  }

  KVASIR_INLINE F gelu_gated(const F& gate, const F& up) {
    const F cubic = F::multiply(F::broadcast(0.044715F), F::multiply(gate, gate));
    const F u = F::multiply(F::broadcast(0.797884560802865356F), F::fma(cubic, gate, gate));
    const F half = F::multiply(F::broadcast(0.5F), gate);
    return F::multiply(F::multiply(half, F::add(F::broadcast(1.0F), tanh<V>(u))), up);
  }

  /// y = activate(gate, up), 16 at a time.
  template <class Activate>
  KVASIR_INLINE void gated(const float* gate, const float* up, float* y, int64_t n,
                           const Activate& activate) {
    for_lanes(
        n, [&](int64_t i) { F::store(y + i, activate(F::load(gate + i), F::load(up + i))); },
        [&](int64_t i, int64_t count) {
          F::store_first(
              y + i, activate(F::load_first(gate + i, count), F::load_first(up + i, count)), count);
        });
  }

  static void swiglu(const float* gate, const float* up, float* y, int64_t n) {
    gated(gate, up, y, n, [](const F& g, const F& u) { return silu_gated(g, u); });
  }

  static void geglu(const float* gate, const float* up, float* y, int64_t n) {
    gated(gate, up, y, n, [](const F& g, const F& u) { return gelu_gated(g, u); });
  }

  static void add(const float* a, const float* b, float* y, int64_t n) {
    for_lanes(
        n, [&](int64_t i) { F::store(y + i, F::add(F::load(a + i), F::load(b + i))); },
        [&](int64_t i, int64_t count) {
          F::store_first(y + i, F::add(F::load_first(a + i, count), F::load_first(b + i, count)),
                         count);
        });
  }

  /// One pair of lanes: (a, b) -> (a cos - b sin, b cos + a sin).
  KVASIR_INLINE void turn(F& a, F& b, const F& cos, const F& sin) {
    const F minus = F::subtract(F::broadcast(-0.0F), F::multiply(b, sin));
    const F turned = F::fma(a, cos, minus);
    b = F::fma(b, cos, F::multiply(a, sin));
    a = turned;
  }

  static void rope(float* x, int64_t n_heads, int64_t head_stride, int64_t rotary_dim,
                   const float* cos, const float* sin, RopePairs pairs) {
    const int64_t half = rotary_dim / 2;
    for (int64_t head = 0; head < n_heads; ++head) {
      float* h = x + head * head_stride;
      if (pairs == RopePairs::interleaved) {
        rope_interleaved(h, half, cos, sin);
        continue;
      }
      for_lanes(
          half,
          [&](int64_t i) {
            F a = F::load(h + i);
            F b = F::load(h + half + i);
            turn(a, b, F::load(cos + i), F::load(sin + i));
            F::store(h + i, a);
            F::store(h + half + i, b);
          },
          [&](int64_t i, int64_t count) {
            F a = F::load_first(h + i, count);
            F b = F::load_first(h + half + i, count);
            turn(a, b, F::load_first(cos + i, count), F::load_first(sin + i, count));
            F::store_first(h + i, a, count);
            F::store_first(h + half + i, b, count);
          });
    }
  }

  /// Rare (the loader brings every model to half-split order): through a buffer.
  static void rope_interleaved(float* h, int64_t half, const float* cos, const float* sin) {
    for (int64_t first = 0; first < half; first += kLanes) {
      const int64_t count = half - first < kLanes ? half - first : int64_t{kLanes};
      float even[kLanes] = {};
      float odd[kLanes] = {};
      for (int64_t i = 0; i < count; ++i) {
        even[i] = h[2 * (first + i)];
        odd[i] = h[2 * (first + i) + 1];
      }
      F a = F::load(even);
      F b = F::load(odd);
      turn(a, b, F::load_first(cos + first, count), F::load_first(sin + first, count));
      F::store(even, a);
      F::store(odd, b);
      for (int64_t i = 0; i < count; ++i) {
        h[2 * (first + i)] = even[i];
        h[2 * (first + i) + 1] = odd[i];
      }
    }
  }

  static void softmax(float* x, int64_t n) {
    F most = F::broadcast(x[0]);
    for_lanes(
        n, [&](int64_t i) { most = F::larger(F::load(x + i), most); },
        [&](int64_t i, int64_t count) {
          // Missing lanes repeat the first element.
          float last[kLanes];
          for (int64_t j = 0; j < kLanes; ++j) last[j] = j < count ? x[i + j] : x[i];
          most = F::larger(F::load(last), most);
        });
    const F largest = F::broadcast(F::largest(most));
    F sums = F::broadcast(0);
    for_lanes(
        n,
        [&](int64_t i) {
          const F e = exp<V>(F::subtract(F::load(x + i), largest));
          F::store(x + i, e);
          sums = F::add(sums, e);
        },
        [&](int64_t i, int64_t count) {
          const F e = exp<V>(F::subtract(F::load_first(x + i, count), largest));
          F::store_first(x + i, e, count);
          sums = F::add(sums, F::load_first(x + i, count));
        });
    const F sum = F::broadcast(F::sum(sums));
    for_lanes(
        n, [&](int64_t i) { F::store(x + i, F::divide(F::load(x + i), sum)); },
        [&](int64_t i, int64_t count) {
          F::store_first(x + i, F::divide(F::load_first(x + i, count), sum), count);
        });
  }

  static int64_t argmax(const float* x, int64_t n) {
    F most = F::broadcast(x[0]);
    int64_t whole = n / kLanes * kLanes;
    for (int64_t i = 0; i < whole; i += kLanes) most = F::larger(F::load(x + i), most);
    float largest = F::largest(most);
    for (int64_t i = whole; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
    for (int64_t i = 0; i < n; ++i) {
      if (x[i] == largest) return i;
    }
    return 0;
  }

  static bool all_finite(const float* x, int64_t n) {
    // x * 0 is 0 for a finite x and NaN otherwise; a sum of zeros stays 0.
    const F zero = F::broadcast(0);
    F sums = zero;
    for_lanes(
        n, [&](int64_t i) { sums = F::fma(F::load(x + i), zero, sums); },
        [&](int64_t i, int64_t count) { sums = F::fma(F::load_first(x + i, count), zero, sums); });
    return F::sum(sums) == 0.0F;
  }
};

}  // namespace kvasir::kernels::generic
