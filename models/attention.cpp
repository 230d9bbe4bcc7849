#include "models/attention.h"

#include <algorithm>

#include "core/base/checked.h"

namespace kvasir {
namespace {

/// Runs items of one call on one thread.
class AttentionWorker {
 public:
  AttentionWorker(const AttentionCall& call, DecoderState::PerThread& own)
      : call_(call), own_(own), state_floats_(call.shape.state_floats()) {}

  /// All partials of the item in order, merged; then the output.
  void attend(const AttentionItem& item) {
    gather_rows(item);
    const int64_t rows = item.n_rows * item.n_heads;
    attend_partial(item, item.first_partial, own_.attention.running);
    for (int64_t partial = item.first_partial + 1; partial < item.end_partial; ++partial) {
      attend_partial(item, partial, own_.attention.next);
      for (int64_t r = 0; r < rows; ++r) {
        call_.kernels.attention_merge(own_.attention.running + r * state_floats_,
                                      own_.attention.next + r * state_floats_,
                                      call_.shape.head_dim);
      }
    }
    finish(item, own_.attention.running);
  }

  /// The item's one partial into the shared states.
  void attend_split(const AttentionItem& item) {
    gather_rows(item);
    attend_partial(item, item.first_partial,
                   call_.partial_states + item.first_state * state_floats_);
  }

  /// The tile's partials, already in the shared states, merged in order; then the output.
  void merge(const AttentionItem& tile) {
    const int64_t rows = tile.n_rows * tile.n_heads;
    float* running = call_.partial_states + tile.first_state * state_floats_;
    for (int64_t partial = tile.first_partial + 1; partial < tile.end_partial; ++partial) {
      const float* next = running + (partial - tile.first_partial) * rows * state_floats_;
      for (int64_t r = 0; r < rows; ++r) {
        call_.kernels.attention_merge(running + r * state_floats_, next + r * state_floats_,
                                      call_.shape.head_dim);
      }
    }
    finish(tile, running);
  }

 private:
  int64_t first_query_head(const AttentionItem& item) const {
    return item.kv_head * call_.shape.group_heads + item.first_head;
  }
  int64_t query_columns() const {
    return call_.shape.n_kv_heads * call_.shape.group_heads * call_.shape.head_dim;
  }

  /// Rows of the kernel's task: the item's queries, each with its heads side by side.
  void gather_rows(const AttentionItem& item) {
    const auto& segment = call_.batch.segments[static_cast<size_t>(item.segment)];
    const int64_t window = call_.window;
    int64_t r = 0;
    for (int64_t i = 0; i < item.n_rows; ++i) {
      const int64_t row = item.first_row + i;
      const int64_t position = segment.first_position + row - segment.first_row;
      const float* query = call_.query + row * query_columns() +
                           first_query_head(item) * call_.shape.head_dim;
      for (int64_t head = 0; head < item.n_heads; ++head, ++r) {
        own_.attention.queries[r] = query + head * call_.shape.head_dim;
        own_.attention.first_key[r] =
            window == 0 ? 0 : std::max<int64_t>(0, position - window + 1);
        own_.attention.end_key[r] = position + 1;
      }
    }
  }

  void attend_partial(const AttentionItem& item, int64_t partial, float* state) {
    const auto blocks = call_.plan.blocks(item.segment);
    const auto before = [](const kernels::KvBlock& block, int64_t position) {
      return block.first_position < position;
    };
    const auto begin = std::lower_bound(blocks.begin(), blocks.end(),
                                        partial * kernels::kAttentionPartial, before);
    const auto end =
        std::lower_bound(begin, blocks.end(), (partial + 1) * kernels::kAttentionPartial, before);
    const auto& layout =
        call_.batch.segments[static_cast<size_t>(item.segment)].sequence->layout(
            call_.place.kind);
    call_.kernels.attention({.key_type = layout.key_type(),
                             .value_type = layout.value_type(),
                             .head_dim = call_.shape.head_dim,
                             .blocks = blocks.data() + (begin - blocks.begin()),
                             .n_blocks = end - begin,
                             .key_offset = layout.key_offset(call_.place.index, item.kv_head),
                             .value_offset = layout.value_offset(call_.place.index, item.kv_head),
                             .n_rows = item.n_rows * item.n_heads,
                             .queries = own_.attention.queries,
                             .first_key = own_.attention.first_key,
                             .end_key = own_.attention.end_key,
                             .scale = call_.scale,
                             .soft_cap = 0,
                             .state = state,
                             .scratch = own_.attention_scratch});
  }

  void finish(const AttentionItem& item, const float* states) {
    int64_t r = 0;
    for (int64_t i = 0; i < item.n_rows; ++i) {
      float* output = call_.output + (item.first_row + i) * query_columns() +
                      first_query_head(item) * call_.shape.head_dim;
      for (int64_t head = 0; head < item.n_heads; ++head, ++r) {
        call_.kernels.attention_finish(states + r * state_floats_, call_.shape.head_dim,
                                       output + head * call_.shape.head_dim);
      }
    }
  }

  const AttentionCall& call_;
  DecoderState::PerThread& own_;
  const int64_t state_floats_;
};

}  // namespace

void run_attention(const AttentionCall& call, DecoderState::PerThread& own, Team& team) {
  AttentionWorker worker(call, own);
  const auto& items = call.plan.items();
  const auto n_items = static_cast<int64_t>(items.size());
  // The last items of a prefill see the most keys: largest first leaves the shortest tail.
  if (!call.plan.split_keys()) {
    team.for_each(n_items, [&](int64_t i) {
      worker.attend(items[static_cast<size_t>(n_items - 1 - i)]);
    });
    return;
  }
  team.for_each(n_items, [&](int64_t i) { worker.attend_split(items[static_cast<size_t>(i)]); });
  const auto& merges = call.plan.merges();
  team.for_each(static_cast<int64_t>(merges.size()),
                [&](int64_t i) { worker.merge(merges[static_cast<size_t>(i)]); });
}

}  // namespace kvasir
