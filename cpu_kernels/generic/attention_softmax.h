// The softmax between the two products, one block of 32 scores at a time
// (online softmax: Milakov and Gimelshein 2018).
#pragma once

#include "cpu_kernels/generic/attention_tiles.h"
#include "cpu_kernels/generic/exp.h"

namespace kvasir::kernels::generic {

template <class V>
struct OnlineSoftmax {
  using F = typename V::F;
  using Range = typename AttentionTiles<V>::Range;
  static constexpr int64_t kBlock = kKvBlockPositions;

  /// a > b ? a : b, with a zero made +0: it does not matter which of two zeros came first.
  KVASIR_INLINE float larger(float a, float b) { return (a > b ? a : b) + 0.0F; }

  /// Caps the 32 scores, makes those outside the range -inf, returns the largest that is no NaN.
  KVASIR_INLINE float prepare(float* scores, const Range& range, float soft_cap) {
    F low = F::load(scores);
    F high = F::load(scores + kLanes);
    if (soft_cap > 0) {
      const F cap = F::broadcast(soft_cap);
      low = F::multiply(cap, tanh<V>(F::divide(low, cap)));
      high = F::multiply(cap, tanh<V>(F::divide(high, cap)));
      F::store(scores, low);
      F::store(scores + kLanes, high);
    }
    const F least = F::broadcast(-__builtin_inff());
    if (!range.whole()) {
      for (int64_t slot = 0; slot < range.first; ++slot) scores[slot] = -__builtin_inff();
      for (int64_t slot = range.end; slot < kBlock; ++slot) scores[slot] = -__builtin_inff();
      low = F::load(scores);
      high = F::load(scores + kLanes);
    }
    return F::largest(F::larger(high, F::larger(low, least)));
  }

  /// exp(before - after) of 16 maxima: what the sums and outputs so far are multiplied by.
  KVASIR_INLINE void correct(const float* before, const float* after, float* corrections) {
    F::store(corrections, exp_nonpositive<V>(F::subtract(F::load(before), F::load(after))));
  }

  /// 32 scores become weights and join the sums.
  KVASIR_INLINE void weigh(float* scores, float largest, float correction, float* sums) {
    const F most = F::broadcast(largest);
    const F low = exp_nonpositive<V>(F::subtract(F::load(scores), most));
    const F high = exp_nonpositive<V>(F::subtract(F::load(scores + kLanes), most));
    F::store(scores, low);
    F::store(scores + kLanes, high);
    F::store(sums, F::add(F::fma(F::load(sums), F::broadcast(correction), low), high));
  }
};

}  // namespace kvasir::kernels::generic
