// Attention over KV blocks: online softmax, one block of 32 positions at a time
// (FlashAttention-2: Dao 2023; online softmax: Milakov and Gimelshein 2018).
#pragma once

#include "cpu_kernels/generic/exp.h"
#include "cpu_kernels/kernels.h"
#include "cpu_kernels/simd/lanes.h"

namespace kvasir::kernels::generic {

/// How 16 elements of a KV type are read and written.
template <class V>
struct KvF32 {
  static constexpr int64_t kBytes = 4;
  KVASIR_INLINE typename V::F load(const std::byte* p) {
    return V::F::load(reinterpret_cast<const float*>(p));
  }
  KVASIR_INLINE void store(std::byte* p, const typename V::F& x) {
    V::F::store(reinterpret_cast<float*>(p), x);
  }
};

template <class V>
struct KvF16 {
  static constexpr int64_t kBytes = 2;
  KVASIR_INLINE typename V::F load(const std::byte* p) { return V::load_half(p); }
  KVASIR_INLINE void store(std::byte* p, const typename V::F& x) { V::store_half(p, x); }
};

template <class V>
struct Attention {
  using F = typename V::F;

  static constexpr int64_t kBlock = kKvBlockPositions;
  static constexpr int64_t kTileRows = 128;
  /// From this many rows on a block is widened to float once for all of them; with fewer, all
  /// blocks of a partial are scored first, several at a time.
  static constexpr int64_t kWidenRows = 8;
  static constexpr int64_t kPartialBlocks = kAttentionPartial / kBlock;
  static constexpr float kInfinity = __builtin_inff();

  struct Scratch {
    alignas(64) float queries[kTileRows * kMaxHeadDim];  // [row][head_dim], scaled
    alignas(64) float keys[kMaxHeadDim * kBlock];        // [head_dim][32]
    alignas(64) float values[kBlock * kMaxHeadDim];      // [32][padded head_dim]
    // [row][32] for one block of many rows, [row][block][32] for all blocks of few rows
    alignas(64) float weights[kTileRows > kWidenRows * kPartialBlocks ? kTileRows * kBlock
                                                                      : kWidenRows * kAttentionPartial];
    float corrections[kWidenRows * kPartialBlocks];
  };
  static_assert(sizeof(Scratch) <= kAttentionScratchBytes);

  KVASIR_INLINE int64_t padded(int64_t head_dim) { return (head_dim + kLanes - 1) / kLanes * kLanes; }
  KVASIR_INLINE int64_t state_floats(int64_t head_dim) { return kStateOutput + padded(head_dim); }

  /// Slots of a block a row sees.
  struct Range {
    int64_t first;
    int64_t end;
    bool empty() const { return first >= end; }
    bool whole() const { return first == 0 && end == kBlock; }
  };
  KVASIR_INLINE Range visible(const AttentionTask& task, int64_t row, int64_t start) {
    const int64_t first = task.first_key[row] - start;
    const int64_t end = task.end_key[row] - start;
    return {first > 0 ? first : 0, end < kBlock ? end : kBlock};
  }

  /// Scores of kRows rows against the 32 keys of each of kBlocks blocks. Every score is one chain of
  /// fused multiply-adds over d, so it takes kRows * kBlocks * 2 chains to hide their latency.
  /// Row m's scores of block b go to weights + m * weight_stride + b * 32.
  template <class Key, int kRows, int kBlocks>
  [[gnu::noinline]] static void score(const float* queries, int64_t head_dim,
                                      const std::byte* const (&keys)[kBlocks], float* weights,
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
            const F sum = F::add(first == 0 ? F::broadcast(0) : totals[m][b][half], parts[m][b][half]);
            F::store(weights + m * weight_stride + b * kBlock + half * kLanes, sum);
            totals[m][b][half] = sum;
          }
        }
      }
      first = end;
      if (first == head_dim) return;
    }
  }

  /// Scores of one row become weights; its max and sums move on; returns what to multiply o by.
  KVASIR_INLINE float soften(const AttentionTask& task, float* weights, const Range& range,
                             float* state) {
    F low = F::load(weights);
    F high = F::load(weights + kLanes);
    if (task.soft_cap > 0) {
      const F cap = F::broadcast(task.soft_cap);
      low = F::multiply(cap, tanh<V>(F::divide(low, cap)));
      high = F::multiply(cap, tanh<V>(F::divide(high, cap)));
    }
    if (!range.whole()) {
      F::store(weights, low);
      F::store(weights + kLanes, high);
      for (int64_t slot = 0; slot < kBlock; ++slot) {
        if (slot < range.first || slot >= range.end) weights[slot] = -kInfinity;
      }
      low = F::load(weights);
      high = F::load(weights + kLanes);
    }
    const float before = state[kStateMax];
    const F start = F::broadcast(before);
    // Adding +0 makes a zero maximum +0 whichever zero came first.
    const float largest = F::largest(F::larger(high, F::larger(low, start))) + 0.0F;
    state[kStateMax] = largest;
    const F most = F::broadcast(largest);
    low = exp<V>(F::subtract(low, most));
    high = exp<V>(F::subtract(high, most));
    const F correction = exp<V>(F::subtract(start, most));
    F::store(weights, low);
    F::store(weights + kLanes, high);
    float* sums = state + kStateSum;
    F::store(sums, F::add(F::fma(F::load(sums), correction, low), high));
    float factor[kLanes];
    F::store(factor, correction);
    return factor[0];
  }

  /// o[m] = o[m] * correction[m] + sum over the visible slots of weight * value, for kRows rows and
  /// kWide times 16 channels.
  template <class Value, int kRows, int kWide>
  KVASIR_INLINE void accumulate(const std::byte* values, int64_t stride, const float* weights,
                                int64_t weight_stride, const float* corrections,
                                int64_t correction_stride, const Range& range, float* output,
                                int64_t state_stride) {
    F sums[kRows][kWide];
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m) {
      const F correction = F::broadcast(corrections[m * correction_stride]);
#pragma GCC unroll 8
      for (int c = 0; c < kWide; ++c)
        sums[m][c] = F::multiply(F::load(output + m * state_stride + c * kLanes), correction);
    }
    for (int64_t slot = range.first; slot < range.end; ++slot) {
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
  template <class Value, int kRows>
  [[gnu::noinline]] static void mix(const std::byte* values, int64_t head_dim, const float* weights,
                                    int64_t weight_stride, const float* corrections,
                                    int64_t correction_stride, Range range, float* states) {
    constexpr int kWide = V::kOutputWide;
    const int64_t stride = padded(head_dim);
    float* output = states + kStateOutput;
    int64_t d = 0;
    for (; d + kWide * kLanes <= stride; d += kWide * kLanes) {
      accumulate<Value, kRows, kWide>(values + d * Value::kBytes, stride, weights, weight_stride,
                                      corrections, correction_stride, range, output + d,
                                      state_floats(head_dim));
    }
    for (; d < stride; d += kLanes) {
      accumulate<Value, kRows, 1>(values + d * Value::kBytes, stride, weights, weight_stride,
                                  corrections, correction_stride, range, output + d,
                                  state_floats(head_dim));
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

  template <class Key>
  static void score_rows(const AttentionTask& task, Scratch& scratch, const std::byte* keys,
                         int64_t first, int64_t end) {
    const std::byte* const one[1] = {keys};
    for (int64_t row = first; row < end; row += V::kScoreRows) {
      const int64_t n = end - row < V::kScoreRows ? end - row : int64_t{V::kScoreRows};
      with_rows<V::kScoreRows>(n, [&]<int kRows>() __attribute__((always_inline)) {
        score<Key, kRows, 1>(scratch.queries + row * task.head_dim, task.head_dim, one,
                             scratch.weights + row * kBlock, kBlock);
      });
    }
  }

  template <class Value>
  static void mix_rows(const AttentionTask& task, Scratch& scratch, const std::byte* values,
                       int64_t tile, int64_t first, int64_t end, int64_t start) {
    const int64_t floats = state_floats(task.head_dim);
    for (int64_t row = first; row < end;) {
      // Neighbouring rows that see the same slots go together.
      const Range range = visible(task, tile + row, start);
      int64_t n = 1;
      while (n < V::kOutputRows && row + n < end) {
        const Range other = visible(task, tile + row + n, start);
        if (other.first != range.first || other.end != range.end) break;
        ++n;
      }
      if (!range.empty()) {
        with_rows<V::kOutputRows>(n, [&]<int kRows>() __attribute__((always_inline)) {
          mix<Value, kRows>(values, task.head_dim, scratch.weights + row * kBlock, kBlock,
                            scratch.corrections + row, 1, range,
                            task.state + (tile + row) * floats);
        });
      }
      row += n;
    }
  }

  /// Rows [tile, tile + n_rows) against one block, widened to float once.
  template <class Key, class Value>
  static void attend_block(const AttentionTask& task, Scratch& scratch, int64_t tile,
                           int64_t n_rows, const KvBlock& block) {
    const int64_t start = block.first_position;
    // Rows before `first` and from `end` on see nothing here; in between some may not either.
    int64_t first = 0;
    int64_t end = n_rows;
    while (first < end && visible(task, tile + first, start).empty()) ++first;
    while (end > first && visible(task, tile + end - 1, start).empty()) --end;
    if (first == end) return;
    const std::byte* keys = block.data + task.key_offset;
    const std::byte* values = block.data + task.value_offset;

    if constexpr (Key::kBytes != 4) {
      for (int64_t i = 0; i < task.head_dim * kBlock; i += kLanes)
        F::store(scratch.keys + i, Key::load(keys + i * Key::kBytes));
      keys = reinterpret_cast<const std::byte*>(scratch.keys);
    }
    score_rows<KvF32<V>>(task, scratch, keys, first, end);
    const int64_t floats = state_floats(task.head_dim);
    for (int64_t row = first; row < end; ++row) {
      const Range range = visible(task, tile + row, start);
      if (range.empty()) continue;
      scratch.corrections[row] =
          soften(task, scratch.weights + row * kBlock, range, task.state + (tile + row) * floats);
    }
    if constexpr (Value::kBytes != 4) {
      for (int64_t i = 0; i < kBlock * padded(task.head_dim); i += kLanes)
        F::store(scratch.values + i, Value::load(values + i * Value::kBytes));
      values = reinterpret_cast<const std::byte*>(scratch.values);
    }
    mix_rows<KvF32<V>>(task, scratch, values, tile, first, end, start);
  }

  /// A few rows against up to 32 blocks: all scores, then all weights, then all values, so that the
  /// long chains of one block do not wait for those of the block before.
  template <class Key, class Value>
  static void attend_few(const AttentionTask& task, Scratch& scratch, int64_t tile, int64_t n_rows,
                         const KvBlock* blocks, int64_t n_blocks) {
    const int64_t floats = state_floats(task.head_dim);
    for (int64_t first = 0; first < n_rows; first += V::kFewRows) {
      const int64_t n = n_rows - first < V::kFewRows ? n_rows - first : int64_t{V::kFewRows};
      with_rows<V::kFewRows>(n, [&]<int kRows>() __attribute__((always_inline)) {
        constexpr int kTogether = V::kScoreChains / kRows > 0 ? V::kScoreChains / kRows : 1;
        const float* queries = scratch.queries + first * task.head_dim;
        int64_t b = 0;
        for (; b + kTogether <= n_blocks; b += kTogether) {
          const std::byte* keys[kTogether];
          for (int i = 0; i < kTogether; ++i) keys[i] = blocks[b + i].data + task.key_offset;
          score<Key, kRows, kTogether>(queries, task.head_dim, keys, scratch.weights + b * kBlock,
                                       kAttentionPartial);
        }
        for (; b < n_blocks; ++b) {
          const std::byte* const keys[1] = {blocks[b].data + task.key_offset};
          score<Key, kRows, 1>(queries, task.head_dim, keys, scratch.weights + b * kBlock,
                               kAttentionPartial);
        }
        for (int64_t row = 0; row < kRows; ++row) {
          float* state = task.state + (tile + first + row) * floats;
          for (int64_t block = 0; block < n_blocks; ++block) {
            const Range range = visible(task, tile + first + row, blocks[block].first_position);
            if (range.empty()) continue;
            scratch.corrections[row * kPartialBlocks + block] = soften(
                task, scratch.weights + row * kAttentionPartial + block * kBlock, range, state);
          }
        }
        mix_few<Value, kRows>(task, scratch, tile + first, blocks, n_blocks);
      });
    }
  }

  /// Rows that see the same slots of every block go together; others one by one.
  template <class Value, int kRows>
  KVASIR_INLINE void mix_few(const AttentionTask& task, Scratch& scratch, int64_t row,
                             const KvBlock* blocks, int64_t n_blocks) {
    const int64_t floats = state_floats(task.head_dim);
    bool same = true;
    for (int64_t m = 1; m < kRows; ++m) {
      same = same && task.first_key[row + m] == task.first_key[row] &&
             task.end_key[row + m] == task.end_key[row];
    }
    for (int64_t block = 0; block < n_blocks; ++block) {
      const std::byte* values = blocks[block].data + task.value_offset;
      const float* weights = scratch.weights + block * kBlock;
      const float* corrections = scratch.corrections + block;
      if (same) {
        const Range range = visible(task, row, blocks[block].first_position);
        if (!range.empty()) {
          mix<Value, kRows>(values, task.head_dim, weights, kAttentionPartial, corrections,
                            kPartialBlocks, range, task.state + row * floats);
        }
        continue;
      }
      for (int64_t m = 0; m < kRows; ++m) {
        const Range range = visible(task, row + m, blocks[block].first_position);
        if (range.empty()) continue;
        mix<Value, 1>(values, task.head_dim, weights + m * kAttentionPartial, kAttentionPartial,
                      corrections + m * kPartialBlocks, kPartialBlocks, range,
                      task.state + (row + m) * floats);
      }
    }
  }

  template <class Key, class Value>
  static void attend(const AttentionTask& task) {
    auto& scratch = *reinterpret_cast<Scratch*>(task.scratch);
    const int64_t floats = state_floats(task.head_dim);
    for (int64_t tile = 0; tile < task.n_rows; tile += kTileRows) {
      const int64_t n_rows = task.n_rows - tile < kTileRows ? task.n_rows - tile : int64_t{kTileRows};
      for (int64_t row = 0; row < n_rows; ++row) {
        const float* query = task.queries[tile + row];
        float* scaled = scratch.queries + row * task.head_dim;
        for (int64_t d = 0; d < task.head_dim; ++d) scaled[d] = query[d] * task.scale;
        float* state = task.state + (tile + row) * floats;
        for (int64_t i = 0; i < floats; i += kLanes) F::store(state + i, F::broadcast(0));
        state[kStateMax] = -kInfinity;
      }
      if (n_rows < kWidenRows) {
        for (int64_t b = 0; b < task.n_blocks; b += kPartialBlocks) {
          const int64_t n = task.n_blocks - b < kPartialBlocks ? task.n_blocks - b : kPartialBlocks;
          attend_few<Key, Value>(task, scratch, tile, n_rows, task.blocks + b, n);
        }
      } else {
        for (int64_t b = 0; b < task.n_blocks; ++b)
          attend_block<Key, Value>(task, scratch, tile, n_rows, task.blocks[b]);
      }
    }
  }

  static void run(const AttentionTask& task) {
    const bool key_f32 = task.key_type == KvType::f32;
    const bool value_f32 = task.value_type == KvType::f32;
    if (key_f32 && value_f32) return attend<KvF32<V>, KvF32<V>>(task);
    if (key_f32) return attend<KvF32<V>, KvF16<V>>(task);
    if (value_f32) return attend<KvF16<V>, KvF32<V>>(task);
    attend<KvF16<V>, KvF16<V>>(task);
  }

  KVASIR_INLINE bool saw_nothing(const float* state) {
    return state[kStateMax] == -kInfinity && state[kStateSum] == 0.0F;
  }

  static void merge(float* running, const float* next, int64_t head_dim) {
    if (saw_nothing(next)) return;
    const float largest =
        running[kStateMax] > next[kStateMax] ? running[kStateMax] : next[kStateMax];
    const F most = F::broadcast(largest);
    const F a = exp<V>(F::subtract(F::broadcast(running[kStateMax]), most));
    const F b = exp<V>(F::subtract(F::broadcast(next[kStateMax]), most));
    running[kStateMax] = largest;
    for (int64_t i = kStateSum; i < state_floats(head_dim); i += kLanes)
      F::store(running + i, F::fma(F::load(next + i), b, F::multiply(F::load(running + i), a)));
  }

  static void finish(const float* state, int64_t head_dim, float* output) {
    const bool nothing = saw_nothing(state);
    const F sum = F::broadcast(F::sum(F::load(state + kStateSum)));
    for (int64_t d = 0; d < head_dim; d += kLanes) {
      const F o = nothing ? F::broadcast(0) : F::divide(F::load(state + kStateOutput + d), sum);
      if (d + kLanes <= head_dim) {
        F::store(output + d, o);
      } else {
        F::store_first(output + d, o, head_dim - d);
      }
    }
  }

  /// A key goes down a column of [head_dim][32]: one element a line, nothing to vectorise but the
  /// rounding.
  template <class Key>
  static void store_key(const float* key, int64_t head_dim, int64_t slot, std::byte* keys) {
    for (int64_t d = 0; d < head_dim; d += kLanes) {
      const int64_t n = head_dim - d < kLanes ? head_dim - d : int64_t{kLanes};
      alignas(64) std::byte buffer[kLanes * 4];
      Key::store(buffer, n == kLanes ? F::load(key + d) : F::load_first(key + d, n));
      for (int64_t i = 0; i < n; ++i) {
        __builtin_memcpy(keys + ((d + i) * kBlock + slot) * Key::kBytes, buffer + i * Key::kBytes,
                         Key::kBytes);
      }
    }
  }

  template <class Value>
  static void store_value(const float* value, int64_t head_dim, int64_t slot, std::byte* values) {
    std::byte* row = values + slot * padded(head_dim) * Value::kBytes;
    for (int64_t d = 0; d < head_dim; d += kLanes) {
      const int64_t n = head_dim - d;
      Value::store(row + d * Value::kBytes,
                   n >= kLanes ? F::load(value + d) : F::load_first(value + d, n));
    }
  }
};

}  // namespace kvasir::kernels::generic
