#include "models/step.h"

#include <algorithm>

#include "core/base/checked.h"
#include "models/attention.h"

namespace kvasir {
namespace {

/// How many panels are claimed at a time. Decoding streams weights: one contiguous share a thread keeps
/// the prefetchers running (135M model, 2 threads: 1.20 ms a token; 2, 4 and 8 shares a thread: 1.30,
/// 1.49, 1.53 ms). Prefill: an eighth of a share, to even out, but no less, since every piece reads
/// all activations again.
int64_t panels_per_piece(int64_t total_panels, int64_t n_rows, int n_threads) {
  const int64_t share = divide_up(total_panels, n_threads);
  return n_rows <= 4 ? share : std::max<int64_t>(1, share / 8);
}

int64_t panel_count(const PackedMatrix& matrix) {
  return divide_up(matrix.n_rows, kernels::kPanelRows);
}

}  // namespace

Step::Step(const StepContext& context, Team& team)
    : context_(context),
      kernels_(context.kernels),
      config_(context.config),
      state_(context.state),
      own_(context.state.threads[static_cast<size_t>(team.thread())]),
      team_(team),
      zone_start_(std::chrono::steady_clock::now()) {}

const BatchSegment& Step::segment(int64_t row) const {
  return context_.batch.segments[static_cast<size_t>(state_.row_segment[row])];
}

int64_t Step::position(int64_t row) const {
  const BatchSegment& s = segment(row);
  return s.first_position + row - s.first_row;
}

void Step::finish_zone(Zone zone) {
  if (team_.thread() != 0) return;
  const auto now = std::chrono::steady_clock::now();
  context_.statistics.zone_time[static_cast<size_t>(zone)] += now - zone_start_;
  zone_start_ = now;
}

void Step::quantize_row(const ActivationBuffer& buffer, InputForms forms, int64_t row) {
  if (forms.groups) {
    kernels_.quantize(buffer.row(row), buffer.n_groups() * kernels::kGroupColumns,
                      buffer.codes + row * buffer.codes_stride(),
                      buffer.groups + row * buffer.n_groups());
  }
  if (forms.wide_groups) {
    kernels_.quantize_wide(buffer.row(row), buffer.n_wide_groups() * kernels::kWideGroupColumns,
                           buffer.wide_codes + row * buffer.codes_stride(),
                           buffer.wide_groups + row * buffer.n_wide_groups());
  }
}

template <class Fill>
void Step::prepare(ActivationBuffer& buffer, ActivationBuffer& own, InputForms forms, int64_t rows,
                   const Fill& fill) {
  const bool private_copy = rows <= kPrivateRows;
  const ActivationBuffer& target = private_copy ? own : buffer;
  const auto one = [&](int64_t row) {
    fill(row, target.row(row));
    quantize_row(target, forms, row);
  };
  if (private_copy) {
    for (int64_t row = 0; row < rows; ++row) one(row);
  } else {
    team_.for_pieces(rows, 4, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) one(row);
    });
  }
  input_ = target.view(rows);
}

void Step::embed(const PackedMatrix& token_embedding) {
  const float scale = config_.embedding_scale;
  team_.for_pieces(n_rows(), 4, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* x = state_.x + row * config_.hidden_size;
      kernels::unpack_row(token_embedding, context_.batch.tokens[static_cast<size_t>(row)], x);
      if (scale != 1.0F) std::transform(x, x + config_.hidden_size, x, [&](float v) { return v * scale; });
      for (size_t kind = 0; kind < context_.positions.size(); ++kind) {
        const auto& positions = context_.positions[kind];
        const int64_t at = row * positions.n_pairs();
        positions.row(position(row), state_.rotary[kind].cos + at, state_.rotary[kind].sin + at);
      }
    }
  });
  finish_zone(Zone::embed);
}

void Step::normalise(const std::vector<float>& weight, InputForms forms) {
  prepare(state_.normed, own_.normed, forms, n_rows(), [&](int64_t row, float* values) {
    kernels_.rms_norm(state_.x + row * config_.hidden_size, weight.data(), config_.norm_epsilon,
                      values, config_.hidden_size);
  });
  finish_zone(Zone::norm);
}

void Step::multiply(const kernels::Activations& input, std::initializer_list<Product> products,
                    bool add_to_output) {
  int64_t total_panels = 0;
  for (const auto& product : products) total_panels += panel_count(*product.matrix);
  const int64_t piece = panels_per_piece(total_panels, input.n_rows, team_.size());
  team_.for_pieces(total_panels, piece, [&](int64_t begin, int64_t end) {
    int64_t first = 0;  // of this product, among all panels
    for (const auto& product : products) {
      const int64_t count = panel_count(*product.matrix);
      const int64_t from = std::max(begin, first);
      const int64_t to = std::min(end, first + count);
      if (from < to) {
        multiply_panels({.weights = product.matrix,
                         .input = &input,
                         .output = product.output,
                         .output_stride = product.matrix->n_rows,
                         .first_panel = from - first,
                         .end_panel = to - first,
                         .add_to_output = add_to_output,
                         .scratch = own_.matmul_scratch});
      }
      first += count;
    }
  });
  if (team_.thread() != 0) return;
  auto& statistics = context_.statistics;
  for (const auto& product : products) {
    const auto& matrix = *product.matrix;
    statistics.weight_bytes +=
        panel_count(matrix) * static_cast<int64_t>(matrix.panel_bytes);
    statistics.weight_multiply_adds += matrix.n_rows * matrix.n_columns * input.n_rows;
    statistics.matmul_calls[static_cast<size_t>(matrix.format)]++;
    if (state_.fast_choices.use_library(matrix, input.n_rows)) statistics.library_matmul_calls++;
  }
}

void Step::multiply_panels(kernels::MatmulTask task) {
  if (own_.fast_dense && state_.fast_choices.use_library(*task.weights, task.input->n_rows)) {
    // The library takes whole panels; rows of a last panel that is not full are ours.
    kernels::MatmulTask whole = task;
    whole.end_panel = std::min(task.end_panel, task.weights->n_rows / kernels::kPanelRows);
    if (whole.first_panel < whole.end_panel && own_.fast_dense->multiply(whole))
      task.first_panel = whole.end_panel;
    if (task.first_panel == task.end_panel) return;
  }
  kernels_.matmul[static_cast<size_t>(task.weights->format)](task);
}

void Step::project_attention(const PackedMatrix& query, const PackedMatrix& key,
                             const PackedMatrix& value) {
  multiply(input_, {{&query, state_.query}, {&key, state_.key}, {&value, state_.value}}, false);
  finish_zone(Zone::matmul);
}

void Step::project_feed_forward(const PackedMatrix& gate, const PackedMatrix& up) {
  multiply(input_, {{&gate, state_.gate}, {&up, state_.up}}, false);
  finish_zone(Zone::matmul);
}

void Step::add_projection(const PackedMatrix& matrix, const std::vector<float>& post_norm) {
  if (post_norm.empty()) {
    multiply(input_, {{&matrix, state_.x}}, true);
    finish_zone(Zone::matmul);
    return;
  }
  multiply(input_, {{&matrix, state_.sublayer}}, false);
  finish_zone(Zone::matmul);
  const int64_t columns = config_.hidden_size;
  team_.for_pieces(n_rows(), 4, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* x = state_.x + row * columns;
      float* y = state_.sublayer + row * columns;
      kernels_.rms_norm(y, post_norm.data(), config_.norm_epsilon, y, columns);
      kernels_.add(x, y, x, columns);
    }
  });
  finish_zone(Zone::norm);
}

void Step::rotate_and_append(const LayerWeights& w, const LayerPlace& place) {
  const AttentionShape shape = attention_shape(config_);
  // Items are (KV head, row); a piece is up to 32 rows of mostly one head.
  team_.for_pieces(n_rows() * shape.n_kv_heads, 32, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item)
      rotate_and_append_row(w, place, item / n_rows(), item % n_rows());
  });
  finish_zone(Zone::rope);
}

void Step::rotate_and_append_row(const LayerWeights& w, const LayerPlace& place, int64_t kv_head,
                                 int64_t row) {
  const AttentionShape shape = attention_shape(config_);
  const int64_t n_pairs = context_.positions[place.kind].n_pairs();
  const float* cos = state_.rotary[place.kind].cos + row * n_pairs;
  const float* sin = state_.rotary[place.kind].sin + row * n_pairs;
  const int64_t kv_column = kv_head * shape.head_dim;
  const int64_t query_column = kv_column * shape.group_heads;
  float* query = state_.query + row * config_.n_query_columns() + query_column;
  float* key = state_.key + row * config_.n_kv_columns() + kv_column;
  float* value = state_.value + row * config_.n_kv_columns() + kv_column;
  prepare_heads({query, shape.group_heads, query_column, w.query_bias, w.query_norm}, cos, sin);
  prepare_heads({key, 1, kv_column, w.key_bias, w.key_norm}, cos, sin);
  if (!w.value_bias.empty())
    kernels_.add(value, w.value_bias.data() + kv_column, value, shape.head_dim);
  kv::Sequence& sequence = *segment(row).sequence;
  const auto& layout = sequence.layout(place.kind);
  const auto slot = sequence.slot(place.kind, position(row));
  kernels_.store_key[static_cast<size_t>(layout.key_type())](
      key, shape.head_dim, slot.slot, slot.block + layout.key_offset(place.index, kv_head));
  kernels_.store_value[static_cast<size_t>(layout.value_type())](
      value, shape.head_dim, slot.slot, slot.block + layout.value_offset(place.index, kv_head));
}

void Step::prepare_heads(const HeadRow& row, const float* cos, const float* sin) {
  const int64_t dim = config_.head_dim;
  if (!row.bias.empty())
    kernels_.add(row.heads, row.bias.data() + row.first_column, row.heads, row.n_heads * dim);
  if (!row.norm.empty()) {
    for (int64_t head = 0; head < row.n_heads; ++head) {
      float* h = row.heads + head * dim;
      kernels_.rms_norm(h, row.norm.data(), config_.norm_epsilon, h, dim);
    }
  }
  kernels_.rope(row.heads, row.n_heads, dim, config_.rotary_dim, cos, sin,
                kernels::RopePairs::half_split);
}

void Step::attend(const LayerPlace& place, InputForms forms) {
  const auto& plan = state_.attention[place.kind];
  run_attention({.shape = attention_shape(config_),
                 .kernels = kernels_,
                 .batch = context_.batch,
                 .window = context_.kinds[place.kind].window,
                 .place = place,
                 .scale = config_.attention_scale,
                 .plan = plan,
                 .query = state_.query,
                 .output = state_.attended.values,
                 .partial_states = state_.partial_states},
                own_, team_);
  const int64_t columns = config_.n_query_columns();
  prepare(state_.attended, own_.attended, forms, n_rows(), [&](int64_t row, float* values) {
    const float* shared = state_.attended.row(row);
    if (values != shared) std::copy_n(shared, columns, values);
  });
  if (team_.thread() == 0) {
    auto& statistics = context_.statistics;
    statistics.attention_calls++;
    statistics.kv_bytes +=
        plan.kv_blocks_read() * config_.n_kv_heads *
        static_cast<int64_t>(context_.batch.segments[0].sequence->layout(place.kind).head_bytes());
    statistics.attention_multiply_adds +=
        2 * plan.visible_keys() * config_.n_heads * config_.head_dim;
  }
  finish_zone(Zone::attention);
}

void Step::gate(InputForms forms) {
  const int64_t columns = config_.intermediate_size;
  const auto activate =
      config_.gate_activation == GateActivation::silu ? kernels_.swiglu : kernels_.geglu;
  prepare(state_.activated, own_.activated, forms, n_rows(), [&](int64_t row, float* values) {
    activate(state_.gate + row * columns, state_.up + row * columns, values, columns);
  });
  finish_zone(Zone::activation);
}

void Step::head(const std::vector<float>& output_norm, const PackedMatrix& output,
                InputForms forms, float* logits) {
  const auto rows = static_cast<int64_t>(context_.batch.logit_rows.size());
  if (rows == 0) return;
  prepare(state_.head_input, own_.head_input, forms, rows, [&](int64_t i, float* values) {
    const int64_t row = context_.batch.logit_rows[static_cast<size_t>(i)];
    kernels_.rms_norm(state_.x + row * config_.hidden_size, output_norm.data(),
                      config_.norm_epsilon, values, config_.hidden_size);
  });
  multiply(input_, {{&output, logits}}, false);
  finish_zone(Zone::head);
}

}  // namespace kvasir
