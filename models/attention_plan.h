// Which pieces attention is cut into, so that all threads have work and no bit depends on it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/engine/batch.h"
#include "core/engine/model.h"
#include "cpu_kernels/kernels.h"
#include "models/config.h"

namespace kvasir {

/// Sizes of attention in one layer kind. A KV head serves a group of query heads (Ainslie et al.
/// 2023, "GQA").
struct AttentionShape {
  int64_t head_dim = 0;
  int64_t n_kv_heads = 0;
  int64_t group_heads = 0;  ///< query heads of one KV head

  static constexpr int64_t kTileQueries = 32;
  int64_t max_tile_rows() const { return kTileQueries * group_heads; }
  int64_t state_floats() const;
};

AttentionShape attention_shape(const Config& config);

/// Query rows [first_row, first_row + n_rows) of one segment against one KV head, for the query
/// heads [first_head, first_head + n_heads) of its group, over the partials [first_partial,
/// end_partial) of 1,024 keys.
struct AttentionItem {
  int32_t segment;
  int32_t kv_head;
  int32_t first_head;
  int32_t n_heads;
  int64_t first_row;
  int64_t n_rows;
  int64_t first_partial;
  int64_t end_partial;
  int64_t first_state;  ///< split_keys: index of the state of (first row, first partial)
};

/// The items of one step for one layer kind, the same for all its layers.
class AttentionPlan {
 public:
  /// Makes room, so that `make` never allocates.
  void reserve(const AttentionShape& shape, const StepLimits& limits);

  void make(const AttentionShape& shape, const kv::LayerKind& kind, size_t kind_index,
            const Batch& batch, int n_threads);

  /// Few queries, many keys: the partials of one query are items of their own, which leave their
  /// states in memory and are merged in order afterwards.
  bool split_keys() const { return split_keys_; }
  const std::vector<AttentionItem>& items() const { return items_; }
  /// split_keys: what to merge; one entry a tile, first_partial..end_partial whole.
  const std::vector<AttentionItem>& merges() const { return merges_; }
  /// Blocks of a segment's visible keys, ascending.
  std::span<const kernels::KvBlock> blocks(int32_t segment) const;
  int64_t kv_blocks_read() const { return static_cast<int64_t>(blocks_.size()); }
  int64_t visible_keys() const { return visible_keys_; }  ///< summed over query rows

  static int64_t max_partial_state_floats(const AttentionShape& shape, const StepLimits& limits);

 private:
  std::vector<AttentionItem> items_;
  std::vector<AttentionItem> merges_;
  std::vector<kernels::KvBlock> blocks_;
  std::vector<size_t> first_block_;  // [n_segments + 1]
  int64_t visible_keys_ = 0;
  bool split_keys_ = false;
};

/// What one thread needs to run items.
struct AttentionScratch {
  const float** queries = nullptr;  ///< [max_tile_rows]
  int64_t* first_key = nullptr;     ///< [max_tile_rows]
  int64_t* end_key = nullptr;       ///< [max_tile_rows]
  float* running = nullptr;         ///< [max_tile_rows][state_floats]
  float* next = nullptr;            ///< [max_tile_rows][state_floats]
};

}  // namespace kvasir
