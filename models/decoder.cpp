#include "models/decoder.h"

#include <algorithm>

#include "core/base/checked.h"
#include "core/base/error.h"
#include "models/step.h"

namespace kvasir {

Decoder::Decoder(Config config, const kernels::KernelTable& kernels)
    : config_(std::move(config)), kernels_(kernels) {
  for (size_t kind = 0; kind < config_.attention_kinds.size(); ++kind) {
    kinds_.push_back({.n_layers = config_.n_layers_of(kind),
                      .n_kv_heads = config_.n_kv_heads,
                      .head_dim = config_.head_dim,
                      .window = config_.attention_kinds[kind].window});
  }
}

void Decoder::finish_loading() {
  for (const auto& kind : config_.attention_kinds)
    positions_.emplace_back(kind, config_.rotary_dim, weights_.rope_factors);
}

// One block of a pre-normalised decoder. [...]: only where the layer has weights for it.
void Decoder::layer(Step& step, const LayerWeights& w, const LayerPlace& place) const {
  // x += [norm] Wo · attention(q, k, v),  h = RMSNorm(x),
  // q = RoPE([norm] (Wq · h [+ bq])),  k = RoPE([norm] (Wk · h [+ bk])),  v = Wv · h [+ bv]
  step.normalise(w.attention_norm, w.inputs.attention);
  step.project_attention(w.query, w.key, w.value);
  step.rotate_and_append(w, place);
  step.attend(place, w.inputs.attention_output);
  step.add_projection(w.attention_output, w.attention_post_norm);

  // x += [norm] Wdown · (activation(Wgate · h) * (Wup · h)),  h = RMSNorm(x)
  step.normalise(w.feed_forward_norm, w.inputs.feed_forward);
  step.project_feed_forward(w.gate, w.up);
  step.gate(w.inputs.down);
  step.add_projection(w.down, w.feed_forward_post_norm);
}

Status Decoder::forward(const Batch& batch, ModelState& model_state, Threads& threads,
                        std::span<float> logits, const CancelToken* cancel,
                        ForwardStatistics& statistics) const {
  auto& state = static_cast<DecoderState&>(model_state);
  const auto start = std::chrono::steady_clock::now();
  for (size_t kind = 0; kind < kinds_.size(); ++kind) {
    state.attention[kind].make(attention_shape(config_), kinds_[kind], kind, batch,
                               threads.count());
  }
  for (size_t s = 0; s < batch.segments.size(); ++s) {
    const auto& segment = batch.segments[s];
    std::fill_n(state.row_segment + segment.first_row, segment.n_rows, static_cast<int32_t>(s));
  }
  const StepContext context = {config_, kernels_, positions_, kinds_, batch, state, statistics};
  threads.run(
      [&](Team& team) {
        Step step(context, team);
        step.embed(weights_.token_embedding);
        for (size_t i = 0; i < config_.layers.size(); ++i) {
          if (team.stopped()) return;
          layer(step, weights_.layers[i], config_.layers[i]);
        }
        step.head(weights_.output_norm, weights_.output, weights_.inputs.head, logits.data());
      },
      cancel);
  statistics.steps++;
  statistics.rows += static_cast<int64_t>(batch.tokens.size());
  statistics.time += std::chrono::steady_clock::now() - start;
  if (cancel != nullptr && cancel->requested())
    return make_error(ErrorCode::cancelled, "the evaluation was cancelled");
  return {};
}

int64_t Decoder::weight_bytes_per_token() const {
  int64_t total = 0;
  for (const PackedMatrix* m : matrices())
    total += divide_up(m->n_rows, kernels::kPanelRows) * static_cast<int64_t>(m->panel_bytes);
  return total;
}

std::vector<const PackedMatrix*> Decoder::matrices() const {
  std::vector<const PackedMatrix*> all = {&weights_.output};
  for (const auto& w : weights_.layers)
    all.insert(all.end(), {&w.query, &w.key, &w.value, &w.attention_output, &w.gate, &w.up, &w.down});
  return all;
}

size_t Decoder::state_bytes(const StepLimits& limits) const {
  DecoderState state;
  return state.carve(config_, weights_.inputs, limits, nullptr);
}

Result<std::unique_ptr<ModelState>> Decoder::make_state(const StepLimits& limits) const {
  auto state = std::make_unique<DecoderState>();
  auto memory = AlignedBuffer::allocate(state->carve(config_, weights_.inputs, limits, nullptr));
  if (!memory) return std::move(memory).error();
  state->memory = std::move(*memory);
  state->carve(config_, weights_.inputs, limits, state->memory.data());
  state->attention.resize(kinds_.size());
  for (auto& plan : state->attention) plan.reserve(attention_shape(config_), limits);
  if (limits.fast_math) {
    state->fast_choices = FastChoices::measure(matrices(), kernels_, limits.max_rows);
    for (auto& own : state->threads) own.fast_dense = FastDense::create();
  }
  return std::unique_ptr<ModelState>(std::move(state));
}

}  // namespace kvasir
