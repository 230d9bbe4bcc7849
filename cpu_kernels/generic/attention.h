// Attention over KV blocks: online softmax, one block of 32 positions at a time
// (FlashAttention-2: Dao 2023; online softmax: Milakov and Gimelshein 2018).
#pragma once

#include "cpu_kernels/generic/attention_softmax.h"
#include "cpu_kernels/generic/attention_tiles.h"
#include "cpu_kernels/generic/exp.h"
#include "cpu_kernels/generic/kv_elements.h"

namespace kvasir::kernels::generic {

template <class V>
struct Attention : AttentionTiles<V>, KvStore<V> {
  using F = typename V::F;
  using Tiles = AttentionTiles<V>;
  using Softmax = OnlineSoftmax<V>;
  using Range = typename Tiles::Range;
  using Tiles::state_floats;

  static constexpr int64_t kBlock = kKvBlockPositions;
  static constexpr int64_t kTileRows = 128;
  /// From V::kWidenRows rows on a block is widened to float once for all of them; with fewer, all
  /// blocks of a partial are scored first, several at a time.
  static constexpr int64_t kPartialBlocks = kAttentionPartial / kBlock;
  /// Few rows: values are asked for this far ahead, in whole blocks; keys, one group of blocks
  /// ahead. 3 rows, 1, 2, 4 and 8 blocks: dim 64 (4 KB each) 10.7, 9.4, 10.9, 11.2 us; dim 128 (8
  /// KB) 18.6, 21.6, 21.0, 22.0.
  static constexpr int64_t kAheadBytes = 8192;
  static constexpr float kInfinity = __builtin_inff();

  struct Scratch {
    alignas(64) float queries[kTileRows * kMaxHeadDim];  // [row][head_dim], scaled
    alignas(64) float keys[kMaxHeadDim * kBlock];        // [head_dim][32]
    alignas(64) float values[kBlock * kMaxHeadDim];      // [32][padded head_dim]
    // [row][32] for one block of many rows, [row][block][32] for all blocks of few rows
    alignas(64) float weights[kTileRows * kBlock];
    // [row] or [row][block], as weights
    alignas(64) float largest[kTileRows];
    alignas(64) float corrections[kTileRows];
  };
  static_assert(sizeof(Scratch) <= kAttentionScratchBytes);
  static_assert(V::kFewRows * kPartialBlocks <= kTileRows && kTileRows % kLanes == 0);

  KVASIR_INLINE Range visible(const AttentionTask& task, int64_t row, int64_t start) {
    const int64_t first = task.first_key[row] - start;
    const int64_t end = task.end_key[row] - start;
    return {first > 0 ? first : 0, end < kBlock ? end : kBlock};
  }

  /// Scores of rows [first, end) against one block become weights. The maxima come first, since
  /// they need no exp; then the corrections of 16 rows at once; then every row by itself, so that
  /// nothing waits for another row.
  KVASIR_INLINE void soften_rows(const AttentionTask& task, Scratch& scratch, int64_t tile,
                                 int64_t first, int64_t end, int64_t start) {
    float* states = task.state + tile * state_floats(task.head_dim);
    const int64_t floats = state_floats(task.head_dim);
    for (int64_t row = first; row < end; ++row) {
      const Range range = visible(task, tile + row, start);
      if (range.empty()) continue;
      float* weights = scratch.weights + row * kBlock;
      scratch.largest[row] = Softmax::prepare(weights, range, task.soft_cap);
    }
    for (int64_t group = first; group < end; group += kLanes) {
      const int64_t group_end = end - group < kLanes ? end : group + kLanes;
      alignas(64) float before[kLanes] = {};
      alignas(64) float after[kLanes] = {};
      for (int64_t row = group; row < group_end; ++row) {
        before[row - group] = states[row * floats + kStateMax];
        after[row - group] = Softmax::larger(scratch.largest[row], before[row - group]);
      }
      alignas(64) float corrections[kLanes];
      Softmax::correct(before, after, corrections);
      for (int64_t row = group; row < group_end; ++row) {
        const Range range = visible(task, tile + row, start);
        if (range.empty()) continue;
        float* state = states + row * floats;
        state[kStateMax] = after[row - group];
        scratch.corrections[row] = corrections[row - group];
        Softmax::weigh(scratch.weights + row * kBlock, after[row - group], corrections[row - group],
                       state + kStateSum);
      }
    }
  }

  /// Scores of one row against all blocks become weights, in the same three passes.
  KVASIR_INLINE void soften_blocks(const AttentionTask& task, float* weights, float* corrections,
                                   int64_t row, const KvBlock* blocks, int64_t n_blocks) {
    float* state = task.state + row * state_floats(task.head_dim);
    alignas(64) float before[kPartialBlocks] = {};
    alignas(64) float after[kPartialBlocks] = {};
    float largest = state[kStateMax];
    for (int64_t b = 0; b < n_blocks; ++b) {
      const Range range = visible(task, row, blocks[b].first_position);
      before[b] = largest;
      if (!range.empty()) {
        largest =
            Softmax::larger(Softmax::prepare(weights + b * kBlock, range, task.soft_cap), largest);
      }
      after[b] = largest;
    }
    state[kStateMax] = largest;
    for (int64_t b = 0; b < n_blocks; b += kLanes)
      Softmax::correct(before + b, after + b, corrections + b);
    for (int64_t b = 0; b < n_blocks; ++b) {
      if (visible(task, row, blocks[b].first_position).empty()) continue;
      Softmax::weigh(weights + b * kBlock, after[b], corrections[b], state + kStateSum);
    }
  }

  template <class Key>
  static void score_rows(const AttentionTask& task, Scratch& scratch, const std::byte* keys,
                         int64_t first, int64_t end) {
    const std::byte* const one[1] = {keys};
    for (int64_t row = first; row < end; row += V::kScoreRows) {
      const int64_t n = end - row < V::kScoreRows ? end - row : int64_t{V::kScoreRows};
      Tiles::template with_rows<V::kScoreRows>(
          n, [&]<int kRows>() __attribute__((always_inline)) {
            Tiles::template score<Key, kRows, 1, false>(scratch.queries + row * task.head_dim,
                                                        task.head_dim, one, nullptr,
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
        Tiles::template with_rows<V::kOutputRows>(
            n, [&]<int kRows>() __attribute__((always_inline)) {
              Tiles::template mix<Value, kRows, false>(
                  values, task.head_dim, scratch.weights + row * kBlock, kBlock,
                  scratch.corrections + row, 1, range, task.state + (tile + row) * floats, nullptr);
            });
      }
      row += n;
    }
  }

  /// Rows [tile, tile + n_rows) against one block, widened to float once.
  template <class Key, class Value>
  static void attend_block(const AttentionTask& task, Scratch& scratch, int64_t tile,
                           int64_t n_rows, const KvBlock& block, const KvBlock* next) {
    const int64_t start = block.first_position;
    // Rows before `first` and from `end` on see nothing here; in between some may not either.
    int64_t first = 0;
    int64_t end = n_rows;
    while (first < end && visible(task, tile + first, start).empty()) ++first;
    while (end > first && visible(task, tile + end - 1, start).empty()) --end;
    if (first == end) return;
    const std::byte* keys = block.data + task.key_offset;
    const std::byte* values = block.data + task.value_offset;
    if (next != nullptr) {
      constexpr int64_t kKeyLine = kBlock * Key::kBytes;
      constexpr int64_t kValueLine = kBlock * Value::kBytes;
      for (int64_t d = 0; d < task.head_dim; ++d)
        Tiles::template fetch<kKeyLine>(next->data + task.key_offset + d * kKeyLine);
      for (int64_t d = 0; d < padded(task.head_dim); ++d)
        Tiles::template fetch<kValueLine>(next->data + task.value_offset + d * kValueLine);
    }

    if constexpr (Key::kBytes != 4) {
      for (int64_t i = 0; i < task.head_dim * kBlock; i += kLanes)
        F::store(scratch.keys + i, Key::load(keys + i * Key::kBytes));
      keys = reinterpret_cast<const std::byte*>(scratch.keys);
    }
    score_rows<KvF32<V>>(task, scratch, keys, first, end);
    soften_rows(task, scratch, tile, first, end, start);
    if constexpr (Value::kBytes != 4) {
      for (int64_t i = 0; i < kBlock * padded(task.head_dim); i += kLanes)
        F::store(scratch.values + i, Value::load(values + i * Value::kBytes));
      values = reinterpret_cast<const std::byte*>(scratch.values);
    }
    mix_rows<KvF32<V>>(task, scratch, values, tile, first, end, start);
  }

  /// A power of two, so that 32 blocks leave no rest.
  template <int kRows>
  static constexpr int blocks_together() {
    int n = 1;
    while (2 * n * kRows <= V::kScoreChains) n *= 2;
    return n;
  }

  /// Scores of a few rows against up to 32 blocks, several blocks at once; meanwhile the keys of
  /// the blocks after those are fetched, and at the end the first values.
  template <class Key, int kRows>
  KVASIR_INLINE void score_blocks(const AttentionTask& task, Scratch& scratch, const float* queries,
                                  const KvBlock* blocks, int64_t n_blocks) {
    constexpr int kTogether = blocks_together<kRows>();
    int64_t b = 0;
    for (; b + kTogether <= n_blocks; b += kTogether) {
      const std::byte* keys[kTogether];
      const std::byte* ahead[kTogether];
      for (int i = 0; i < kTogether; ++i) {
        keys[i] = blocks[b + i].data + task.key_offset;
        const int64_t next = b + kTogether + i;
        ahead[i] = next < n_blocks ? blocks[next].data + task.key_offset
                                   : blocks[i].data + task.value_offset;
      }
      Tiles::template score<Key, kRows, kTogether, true>(
          queries, task.head_dim, keys, ahead, scratch.weights + b * kBlock, kAttentionPartial);
    }
    for (; b < n_blocks; ++b) {
      const std::byte* const keys[1] = {blocks[b].data + task.key_offset};
      Tiles::template score<Key, kRows, 1, false>(queries, task.head_dim, keys, nullptr,
                                                  scratch.weights + b * kBlock, kAttentionPartial);
    }
  }

  /// A few rows against up to 32 blocks: all scores, then all weights, then all values, so that the
  /// long chains of one block do not wait for those of the block before.
  template <class Key, class Value>
  static void attend_few(const AttentionTask& task, Scratch& scratch, int64_t tile, int64_t n_rows,
                         const KvBlock* blocks, int64_t n_blocks) {
    const auto seen = [&](const KvBlock& block) {
      for (int64_t row = 0; row < n_rows; ++row)
        if (!visible(task, tile + row, block.first_position).empty()) return true;
      return false;
    };
    for (; n_blocks > 0 && !seen(blocks[0]); --n_blocks) ++blocks;
    while (n_blocks > 0 && !seen(blocks[n_blocks - 1])) --n_blocks;
    for (int64_t first = 0; first < n_rows; first += V::kFewRows) {
      const int64_t n = n_rows - first < V::kFewRows ? n_rows - first : int64_t{V::kFewRows};
      Tiles::template with_rows<V::kFewRows>(
          n, [&]<int kRows>() __attribute__((always_inline)) {
            score_blocks<Key, kRows>(task, scratch, scratch.queries + first * task.head_dim, blocks,
                                     n_blocks);
            for (int64_t row = 0; row < kRows; ++row) {
              soften_blocks(task, scratch.weights + row * kAttentionPartial,
                            scratch.corrections + row * kPartialBlocks, tile + first + row, blocks,
                            n_blocks);
            }
            mix_few<Value, kRows>(task, scratch, tile + first, blocks, n_blocks);
          });
    }
  }

  /// Neighbouring rows that see the same slots of a block go together: all of them but in the last
  /// blocks of queries that follow each other.
  template <class Value, int kRows>
  KVASIR_INLINE void mix_few(const AttentionTask& task, Scratch& scratch, int64_t row,
                             const KvBlock* blocks, int64_t n_blocks) {
    const int64_t floats = state_floats(task.head_dim);
    const int64_t value_bytes = kBlock * padded(task.head_dim) * Value::kBytes;
    const int64_t distance = value_bytes < kAheadBytes ? kAheadBytes / value_bytes : 1;
    for (int64_t block = 0; block < n_blocks; ++block) {
      const std::byte* values = blocks[block].data + task.value_offset;
      const std::byte* ahead =
          blocks[block + distance < n_blocks ? block + distance : block].data + task.value_offset;
      const auto mix_from = [&]<int kCount>(int64_t m, const Range& range)
          __attribute__((always_inline)) {
        Tiles::template mix<Value, kCount, true>(
            values, task.head_dim, scratch.weights + m * kAttentionPartial + block * kBlock,
            kAttentionPartial, scratch.corrections + m * kPartialBlocks + block, kPartialBlocks,
            range, task.state + (row + m) * floats, ahead);
      };
      for (int64_t m = 0; m < kRows;) {
        const Range range = visible(task, row + m, blocks[block].first_position);
        int64_t n = 1;
        while (m + n < kRows) {
          const Range other = visible(task, row + m + n, blocks[block].first_position);
          if (other.first != range.first || other.end != range.end) break;
          ++n;
        }
        if (!range.empty()) {
          Tiles::template with_rows<kRows>(
              n, [&]<int kCount>() __attribute__((always_inline)) {
                mix_from.template operator()<kCount>(m, range);
              });
        }
        m += n;
      }
    }
  }

  template <class Key, class Value>
  static void attend(const AttentionTask& task) {
    auto& scratch = *reinterpret_cast<Scratch*>(task.scratch);
    const int64_t floats = state_floats(task.head_dim);
    for (int64_t tile = 0; tile < task.n_rows; tile += kTileRows) {
      const int64_t n_rows =
          task.n_rows - tile < kTileRows ? task.n_rows - tile : int64_t{kTileRows};
      for (int64_t row = 0; row < n_rows; ++row) {
        const float* query = task.queries[tile + row];
        float* scaled = scratch.queries + row * task.head_dim;
        for (int64_t d = 0; d < task.head_dim; ++d) scaled[d] = query[d] * task.scale;
        float* state = task.state + (tile + row) * floats;
        for (int64_t i = 0; i < floats; i += kLanes) F::store(state + i, F::broadcast(0));
        state[kStateMax] = -kInfinity;
      }
      if (n_rows < V::kWidenRows) {
        for (int64_t b = 0; b < task.n_blocks; b += kPartialBlocks) {
          const int64_t n = task.n_blocks - b < kPartialBlocks ? task.n_blocks - b : kPartialBlocks;
          attend_few<Key, Value>(task, scratch, tile, n_rows, task.blocks + b, n);
        }
      } else {
        for (int64_t b = 0; b < task.n_blocks; ++b)
          attend_block<Key, Value>(task, scratch, tile, n_rows, task.blocks[b],
                                   b + 1 < task.n_blocks ? task.blocks + b + 1 : nullptr);
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
};

}  // namespace kvasir::kernels::generic
