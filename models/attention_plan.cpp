#include "models/attention_plan.h"

#include <algorithm>

#include "core/base/checked.h"

namespace kvasir {
namespace {

/// Below this many items for each thread one slow item would leave the others waiting.
constexpr int64_t kItemsPerThread = 4;
/// Keys are split only for steps with few query rows (decoding, verification): a prefill has
/// tiles enough, and its states would be large.
constexpr int64_t kMaxSplitRows = 8;

/// First position a query at `position` sees.
int64_t first_visible(int64_t position, int64_t window) {
  return window == 0 ? 0 : std::max<int64_t>(0, position - window + 1);
}

}  // namespace

int64_t AttentionShape::state_floats() const {
  return kernels::kStateOutput + round_up(head_dim, kernels::kLanes);
}

AttentionShape attention_shape(const Config& config) {
  return {.head_dim = config.head_dim,
          .n_kv_heads = config.n_kv_heads,
          .group_heads = config.n_heads / config.n_kv_heads};
}

int64_t AttentionPlan::max_partial_state_floats(const AttentionShape& shape,
                                                const StepLimits& limits) {
  // Every split row has a state for each of its sequence's partials and each query head. At most
  // kMaxSplitRows rows exist, and all of them may be in the longest sequence.
  const int64_t partials = divide_up(limits.max_context_tokens, kernels::kAttentionPartial) + 1;
  return kMaxSplitRows * partials * shape.n_kv_heads * shape.group_heads * shape.state_floats();
}

void AttentionPlan::reserve(const AttentionShape& shape, const StepLimits& limits) {
  const int64_t tiles = divide_up(limits.max_rows, AttentionShape::kTileQueries) +
                        std::min(limits.max_sequences, limits.max_rows);
  const int64_t partials = divide_up(limits.max_context_tokens, kernels::kAttentionPartial) + 1;
  const auto n_tiles = static_cast<size_t>(tiles * shape.n_kv_heads * shape.group_heads);
  items_.reserve(n_tiles + static_cast<size_t>(kMaxSplitRows * partials * shape.n_kv_heads *
                                               shape.group_heads));
  merges_.reserve(n_tiles);
  blocks_.reserve(static_cast<size_t>(
      divide_up(limits.max_context_tokens, kv::kBlockPositions) + limits.max_sequences));
  first_block_.reserve(static_cast<size_t>(limits.max_sequences) + 1);
}

void AttentionPlan::make(const AttentionShape& shape, const kv::LayerKind& kind, size_t kind_index,
                         const Batch& batch, int n_threads) {
  items_.clear();
  merges_.clear();
  blocks_.clear();
  first_block_.clear();
  visible_keys_ = 0;
  int64_t n_tiles = 0;
  int64_t n_tile_partials = 0;
  int64_t n_rows = 0;
  // One tile: up to 32 consecutive queries of a segment.
  const auto for_tiles = [&](auto&& visit) {
    for (size_t s = 0; s < batch.segments.size(); ++s) {
      const auto& segment = batch.segments[s];
      for (int64_t row = 0; row < segment.n_rows; row += AttentionShape::kTileQueries) {
        const int64_t rows = std::min(AttentionShape::kTileQueries, segment.n_rows - row);
        const int64_t position = segment.first_position + row;
        visit(AttentionItem{
            .segment = static_cast<int32_t>(s),
            .kv_head = 0,
            .first_head = 0,
            .n_heads = static_cast<int32_t>(shape.group_heads),
            .first_row = segment.first_row + row,
            .n_rows = rows,
            .first_partial = first_visible(position, kind.window) / kernels::kAttentionPartial,
            .end_partial = (position + rows - 1) / kernels::kAttentionPartial + 1,
            .first_state = 0});
      }
    }
  };
  for (const auto& segment : batch.segments) {
    first_block_.push_back(blocks_.size());
    segment.sequence->append_blocks(kind_index, first_visible(segment.first_position, kind.window),
                                    segment.first_position + segment.n_rows, blocks_);
    for (int64_t row = 0; row < segment.n_rows; ++row) {
      const int64_t position = segment.first_position + row;
      visible_keys_ += position + 1 - first_visible(position, kind.window);
    }
    n_rows += segment.n_rows;
  }
  first_block_.push_back(blocks_.size());
  for_tiles([&](const AttentionItem& tile) {
    n_tiles++;
    n_tile_partials += tile.end_partial - tile.first_partial;
  });

  const int64_t wanted = kItemsPerThread * n_threads;
  split_keys_ = n_threads > 1 && n_tiles * shape.n_kv_heads < wanted && n_rows <= kMaxSplitRows &&
                n_tile_partials > n_tiles;
  const int64_t n_items = (split_keys_ ? n_tile_partials : n_tiles) * shape.n_kv_heads;
  // A group's heads read the same keys and values and fill the pipeline together: three rows cost
  // hardly more than one, so heads are taken apart only when threads would have nothing at all.
  const bool split_heads = n_items < n_threads;
  const int64_t heads = split_heads ? 1 : shape.group_heads;

  int64_t state = 0;
  for_tiles([&](AttentionItem tile) {
    for (int64_t kv_head = 0; kv_head < shape.n_kv_heads; ++kv_head) {
      for (int64_t head = 0; head < shape.group_heads; head += heads) {
        tile.kv_head = static_cast<int32_t>(kv_head);
        tile.first_head = static_cast<int32_t>(head);
        tile.n_heads = static_cast<int32_t>(heads);
        tile.first_state = state;
        if (!split_keys_) {
          items_.push_back(tile);
          continue;
        }
        merges_.push_back(tile);
        for (int64_t partial = tile.first_partial; partial < tile.end_partial; ++partial) {
          AttentionItem item = tile;
          item.first_partial = partial;
          item.end_partial = partial + 1;
          item.first_state = state;
          items_.push_back(item);
          state += tile.n_rows * heads;
        }
      }
    }
  });
}

std::span<const kernels::KvBlock> AttentionPlan::blocks(int32_t segment) const {
  const size_t first = first_block_[static_cast<size_t>(segment)];
  return std::span(blocks_).subspan(first, first_block_[static_cast<size_t>(segment) + 1] - first);
}

}  // namespace kvasir
