// The two products of attention in registers: queries x keys, weights x values.
#pragma once

#include "cpu_kernels/generic/kv_elements.h"

namespace kvasir::kernels::generic {

template <class V>
struct AttentionTiles {
  using F = typename V::F;
  static constexpr int64_t kBlock = kKvBlockPositions;

  KVASIR_INLINE int64_t state_floats(int64_t head_dim) { return kStateOutput + padded(head_dim); }

  /// Slots of a block a row sees. (Inside a template: a plain struct's functions could be shared
  /// with files of other flags.)
  struct Range {
    int64_t first;
    int64_t end;
    bool empty() const { return first >= end; }
    bool whole() const { return first == 0 && end == kBlock; }
  };

  /// Asks for the cache lines of kBytes bytes. Decode from memory, 1,024 keys of f16, AVX-512, 3
  /// rows: dim 64 17.4 -> 9.4 us, dim 128 40 -> 19 us. Into L2 only is the same within the noise;
  /// huge pages without this, 5 to 10%.
  template <int64_t kBytes>
  KVASIR_INLINE void fetch(const std::byte* at) {
    for (int64_t i = 0; i < kBytes; i += 64) __builtin_prefetch(at + i, 0, 3);
  }

  /// Scores of kRows rows against the 32 keys of each of kBlocks blocks. Every score is one chain
  /// of fused multiply-adds over d, so it takes kRows * kBlocks * 2 chains to hide their latency.
  /// Row m's scores of block b go to weights + m * weight_stride + b * 32.
  template <class Key, int kRows, int kBlocks, bool kAhead>
  [[gnu::noinline]] static void score(const float* queries, int64_t head_dim,
                                      const std::byte* const (&keys)[kBlocks],
                                      const std::byte* const* ahead, float* weights,
                                      int64_t weight_stride) {
    F totals[kRows][kBlocks][2];
    for (auto& row : totals)
      for (auto& block : row) block[0] = block[1] = F::broadcast(0);
    int64_t first = 0;
    for (;;) {
      const int64_t end = head_dim - first < kDenseChunk ? head_dim : first + kDenseChunk;
      F parts[kRows][kBlocks][2];
      for (auto& row : parts)
        for (auto& block : row) block[0] = block[1] = F::broadcast(0);
      for (int64_t d = first; d < end; ++d) {
#pragma GCC unroll 16
        for (int b = 0; b < kBlocks; ++b) {
          if constexpr (kAhead) fetch<kBlock * Key::kBytes>(ahead[b] + d * kBlock * Key::kBytes);
          const F low = Key::load(keys[b] + d * kBlock * Key::kBytes);
          const F high = Key::load(keys[b] + (d * kBlock + kLanes) * Key::kBytes);
#pragma GCC unroll 16
          for (int m = 0; m < kRows; ++m) {
            const F q = F::broadcast(queries[m * head_dim + d]);
            parts[m][b][0] = F::fma(q, low, parts[m][b][0]);
            parts[m][b][1] = F::fma(q, high, parts[m][b][1]);
          }
        }
      }
      for (int m = 0; m < kRows; ++m) {
        for (int b = 0; b < kBlocks; ++b) {
          for (int half = 0; half < 2; ++half) {
            // The first chunk joins a total of +0.
            const F sum =
                F::add(first == 0 ? F::broadcast(0) : totals[m][b][half], parts[m][b][half]);
            F::store(weights + m * weight_stride + b * kBlock + half * kLanes, sum);
            totals[m][b][half] = sum;
          }
        }
      }
      first = end;
      if (first == head_dim) return;
    }
  }

  /// o[m] = o[m] * correction[m] + sum over the visible slots of weight * value, for kRows rows and
  /// kWide times 16 channels.
  template <class Value, int kRows, int kWide, bool kAhead>
  KVASIR_INLINE void accumulate(const std::byte* values, const std::byte* ahead, int64_t stride,
                                const float* weights, int64_t weight_stride,
                                const float* corrections, int64_t correction_stride,
                                const Range& range, float* output, int64_t state_stride) {
    F sums[kRows][kWide];
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m) {
      const F correction = F::broadcast(corrections[m * correction_stride]);
#pragma GCC unroll 8
      for (int c = 0; c < kWide; ++c)
        sums[m][c] = F::multiply(F::load(output + m * state_stride + c * kLanes), correction);
    }
    for (int64_t slot = range.first; slot < range.end; ++slot) {
      if constexpr (kAhead)
        fetch<kWide * kLanes * Value::kBytes>(ahead + slot * stride * Value::kBytes);
      F value[kWide];
#pragma GCC unroll 8
      for (int c = 0; c < kWide; ++c)
        value[c] = Value::load(values + (slot * stride + c * kLanes) * Value::kBytes);
#pragma GCC unroll 16
      for (int m = 0; m < kRows; ++m) {
        const F weight = F::broadcast(weights[m * weight_stride + slot]);
#pragma GCC unroll 8
        for (int c = 0; c < kWide; ++c) sums[m][c] = F::fma(weight, value[c], sums[m][c]);
      }
    }
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 8
      for (int c = 0; c < kWide; ++c) F::store(output + m * state_stride + c * kLanes, sums[m][c]);
    }
  }

  /// All channels of kRows rows that see the same slots.
  template <class Value, int kRows, bool kAhead>
  [[gnu::noinline]] static void mix(const std::byte* values, int64_t head_dim, const float* weights,
                                    int64_t weight_stride, const float* corrections,
                                    int64_t correction_stride, Range range, float* states,
                                    const std::byte* ahead) {
    constexpr int kWide = V::kOutputWide;
    const int64_t stride = padded(head_dim);
    float* output = states + kStateOutput;
    int64_t d = 0;
    for (; d + kWide * kLanes <= stride; d += kWide * kLanes) {
      accumulate<Value, kRows, kWide, kAhead>(
          values + d * Value::kBytes, kAhead ? ahead + d * Value::kBytes : nullptr, stride, weights,
          weight_stride, corrections, correction_stride, range, output + d, state_floats(head_dim));
    }
    for (; d < stride; d += kLanes) {
      accumulate<Value, kRows, 1, kAhead>(
          values + d * Value::kBytes, kAhead ? ahead + d * Value::kBytes : nullptr, stride, weights,
          weight_stride, corrections, correction_stride, range, output + d, state_floats(head_dim));
    }
  }

  /// f<kRows>() for rows [row, row + n), n <= kRows.
  template <int kRows, class F2>
  KVASIR_INLINE void with_rows(int64_t n, const F2& f) {
    if constexpr (kRows > 0) {
      if (n == kRows) {
        f.template operator()<kRows>();
      } else {
        with_rows<kRows - 1>(n, f);
      }
    }
  }
};

}  // namespace kvasir::kernels::generic
