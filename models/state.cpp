#include "models/state.h"

#include "core/base/checked.h"

namespace kvasir {

int64_t ActivationBuffer::codes_stride() const {
  return round_up(n_columns, static_cast<int64_t>(kCacheLineBytes));
}

kernels::Activations ActivationBuffer::view(int64_t n_rows) const {
  return {.n_rows = n_rows,
          .n_columns = n_columns,
          .values = values,
          .values_stride = n_columns,
          .codes = codes,
          .codes_stride = codes_stride(),
          .groups = groups,
          .groups_stride = n_groups(),
          .wide_codes = wide_codes,
          .wide_groups = wide_groups,
          .wide_groups_stride = n_wide_groups()};
}

ActivationBuffer Carver::take_activations(int64_t n_rows, int64_t n_columns, InputForms forms) {
  ActivationBuffer buffer;
  buffer.n_columns = n_columns;
  buffer.values = take<float>(n_rows * n_columns);
  if (forms.groups) {
    buffer.codes = take<int8_t>(n_rows * buffer.codes_stride());
    buffer.groups = take<kernels::ActivationGroup>(n_rows * buffer.n_groups());
  }
  if (forms.wide_groups) {
    buffer.wide_codes = take<int8_t>(n_rows * buffer.codes_stride());
    buffer.wide_groups = take<kernels::WideActivationGroup>(n_rows * buffer.n_wide_groups());
  }
  return buffer;
}

size_t DecoderState::carve(const Config& config, const MatrixInputs& inputs,
                           const StepLimits& step_limits, std::byte* base) {
  limits = step_limits;
  const int64_t rows = limits.max_rows;
  Carver carver(base);
  InputForms both = inputs.attention;  // one buffer serves the inputs of attention and feed-forward
  both.add(inputs.feed_forward);
  row_segment = carver.take<int32_t>(rows);
  x = carver.take<float>(rows * config.hidden_size);
  normed = carver.take_activations(rows, config.hidden_size, both);
  query = carver.take<float>(rows * config.n_query_columns());
  key = carver.take<float>(rows * config.n_kv_columns());
  value = carver.take<float>(rows * config.n_kv_columns());
  attended = carver.take_activations(rows, config.n_query_columns(), inputs.attention_output);
  gate = carver.take<float>(rows * config.intermediate_size);
  up = carver.take<float>(rows * config.intermediate_size);
  activated = carver.take_activations(rows, config.intermediate_size, inputs.down);
  sublayer = config.post_norms ? carver.take<float>(rows * config.hidden_size) : nullptr;
  rotary.resize(config.attention_kinds.size());
  for (auto& kind : rotary) {
    kind.cos = carver.take<float>(rows * (config.rotary_dim / 2));
    kind.sin = carver.take<float>(rows * (config.rotary_dim / 2));
  }
  head_input = carver.take_activations(limits.max_logit_rows, config.hidden_size, inputs.head);

  const AttentionShape shape = attention_shape(config);
  threads.resize(static_cast<size_t>(limits.n_threads));
  for (auto& own : threads) {
    own.normed = carver.take_activations(kPrivateRows, config.hidden_size, both);
    own.head_input = carver.take_activations(kPrivateRows, config.hidden_size, inputs.head);
    own.attended =
        carver.take_activations(kPrivateRows, config.n_query_columns(), inputs.attention_output);
    own.activated =
        carver.take_activations(kPrivateRows, config.intermediate_size, inputs.down);
    own.matmul_scratch = carver.take<std::byte>(kernels::kMatmulScratchBytes);
    own.attention_scratch = carver.take<std::byte>(kernels::kAttentionScratchBytes);
    own.attention.queries = carver.take<const float*>(shape.max_tile_rows());
    own.attention.first_key = carver.take<int64_t>(shape.max_tile_rows());
    own.attention.end_key = carver.take<int64_t>(shape.max_tile_rows());
    own.attention.running = carver.take<float>(shape.max_tile_rows() * shape.state_floats());
    own.attention.next = carver.take<float>(shape.max_tile_rows() * shape.state_floats());
  }
  partial_states = carver.take<float>(AttentionPlan::max_partial_state_floats(shape, limits));
  return carver.used();
}

}  // namespace kvasir
