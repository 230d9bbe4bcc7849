#include "core/engine/engine.h"

#include <algorithm>

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/system_memory.h"

namespace kvasir {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int64_t kMaxPrefillChunk = 65536;
constexpr int64_t kMaxContextTokens = int64_t{1} << 27;
constexpr int64_t kMaxSequences = 4096;

/// Every 0 replaced by the default that fits the model and the machine.
EngineOptions resolve(const Model& model, EngineOptions options) {
  if (options.context_tokens == 0) options.context_tokens = model.trained_context_tokens();
  if (options.threads == 0) options.threads = advise_threads().count;
  if (!options.kv_type) options.kv_type = model.is_f32() ? kv::KvType::f32 : kv::KvType::f16;
  options.max_logit_rows = std::clamp<int64_t>(options.max_logit_rows, 1, std::max<int64_t>(1, options.prefill_chunk));
  return options;
}

StepLimits step_limits(const EngineOptions& options) {
  return {.max_rows = options.prefill_chunk,
          .max_logit_rows = options.max_logit_rows,
          .max_sequences = options.max_sequences,
          .max_context_tokens = options.context_tokens * options.max_sequences,
          .n_threads = options.threads,
          .fast_math = options.math == MathMode::fast};
}

Status check_range(const char* what, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return {};
  return make_error(ErrorCode::invalid_argument, "{} is {}, but must be from {} to {}", what, value,
                    least, most);
}

Status check(const EngineOptions& options) {
  if (auto s = check_range("the context length", options.context_tokens, 1, kMaxContextTokens); !s)
    return s;
  if (auto s = check_range("the prefill chunk", options.prefill_chunk, 1, kMaxPrefillChunk); !s)
    return s;
  if (auto s = check_range("the number of threads", options.threads, 1, kMaxThreads); !s) return s;
  return check_range("the number of sequences", options.max_sequences, 1, kMaxSequences);
}

/// Blocks one sequence of a kind may hold at the context length.
int64_t blocks_per_sequence(const kv::LayerKind& kind, const EngineOptions& options) {
  const int64_t all = divide_up(options.context_tokens, kv::kBlockPositions);
  if (kind.window == 0) return all;
  const int64_t ring = divide_up(kind.window - 1 + options.prefill_chunk, kv::kBlockPositions) + 2;
  return std::min(all, ring);
}

}  // namespace

MemoryPlan Engine::plan(const Model& model, const EngineOptions& asked) {
  const EngineOptions options = resolve(model, asked);
  MemoryPlan plan;
  plan.context_tokens = options.context_tokens;
  plan.kv_type = *options.kv_type;
  plan.weight_bytes = model.weight_bytes();
  for (const auto& kind : model.layer_kinds()) {
    const size_t block = kv::BlockLayout(kind, plan.kv_type, plan.kv_type).block_bytes();
    plan.kv_bytes_per_token += block / static_cast<size_t>(kv::kBlockPositions);
    plan.kv_bytes +=
        block * static_cast<size_t>(blocks_per_sequence(kind, options) * options.max_sequences);
  }
  const auto logits = static_cast<size_t>(options.max_logit_rows * model.n_vocab()) * sizeof(float);
  plan.scratch_bytes = model.state_bytes(step_limits(options)) + logits;
  return plan;
}

Result<std::unique_ptr<Engine>> Engine::create(std::shared_ptr<const Model> model,
                                               EngineOptions asked) {
  std::unique_ptr<Engine> engine(new Engine());
  engine->options_ = resolve(*model, asked);
  if (auto s = check(engine->options_); !s) return std::move(s).error();
  const EngineOptions& options = engine->options_;
  engine->plan_ = plan(*model, options);
  engine->threads_ = Threads::create(options.threads);

  engine->pools_.kinds = model->layer_kinds();
  for (const auto& kind : model->layer_kinds()) {
    engine->pools_.pools.push_back(std::make_unique<kv::BlockPool>(
        kv::BlockLayout(kind, *options.kv_type, *options.kv_type),
        blocks_per_sequence(kind, options) * options.max_sequences));
  }
  auto state = model->make_state(step_limits(options));
  if (!state) return std::move(state).error();
  engine->state_ = std::move(*state);

  const auto logit_floats = static_cast<size_t>(options.max_logit_rows * model->n_vocab());
  auto logits = AlignedBuffer::allocate(logit_floats * sizeof(float));
  if (!logits) return std::move(logits).error();
  engine->logits_memory_ = std::move(*logits);

  engine->tokens_.reserve(static_cast<size_t>(options.prefill_chunk));
  engine->segments_.reserve(static_cast<size_t>(options.max_sequences));
  engine->logit_rows_.reserve(static_cast<size_t>(options.max_logit_rows));
  engine->model_ = std::move(model);
  return engine;
}

Result<std::unique_ptr<kv::Sequence>> Engine::new_sequence() {
  return std::make_unique<kv::Sequence>(pools_);
}

Status Engine::step(std::span<const StepRequest> requests, const CancelToken* cancel) {
  const std::lock_guard lock(mutex_);
  tokens_.clear();
  segments_.clear();
  logit_rows_.clear();
  logits_ = {};
  for (const auto& request : requests) {
    const auto n = static_cast<int64_t>(request.tokens.size());
    const auto first_row = static_cast<int64_t>(tokens_.size());
    const int64_t first_position = request.sequence->length();
    if (auto s = check_range("the number of tokens of a step", first_row + n, 1,
                             options_.prefill_chunk);
        !s)
      return s;
    if (first_position + n > options_.context_tokens) {
      return make_error(ErrorCode::limit_exceeded, "{} tokens do not fit a context of {} tokens",
                        first_position + n, options_.context_tokens);
    }
    for (int64_t i = 0; i < n; ++i) {
      const TokenId token = request.tokens[static_cast<size_t>(i)];
      if (token < 0 || token >= model_->n_vocab()) {
        return make_error(ErrorCode::invalid_argument,
                          "token {} at position {} is outside the vocabulary of {} tokens", token,
                          first_position + i, model_->n_vocab());
      }
      tokens_.push_back(token);
      if (request.all_logits || (request.last_logits && i == n - 1))
        logit_rows_.push_back(first_row + i);
    }
    segments_.push_back({request.sequence, first_row, n, first_position});
  }
  if (static_cast<int64_t>(logit_rows_.size()) > options_.max_logit_rows ||
      static_cast<int64_t>(segments_.size()) > options_.max_sequences) {
    return make_error(ErrorCode::invalid_argument,
                      "a step of {} sequences and {} rows of logits exceeds the engine's {} and {}",
                      segments_.size(), logit_rows_.size(), options_.max_sequences,
                      options_.max_logit_rows);
  }

  const auto undo = [&] {
    for (const auto& segment : segments_) segment.sequence->drop_uncommitted();
  };
  for (const auto& segment : segments_) {
    if (auto s = segment.sequence->reserve(segment.first_position + segment.n_rows); !s) {
      undo();
      return s;
    }
  }
  const std::span<float> logits(logits_memory_.as<float>(),
                                logit_rows_.size() * static_cast<size_t>(model_->n_vocab()));
  last_step_ = {};
  auto status = model_->forward({tokens_, segments_, logit_rows_}, *state_, *threads_, logits,
                                cancel, last_step_);
  if (!status) {
    undo();
    return status;
  }
  for (const auto& segment : segments_)
    segment.sequence->commit(segment.first_position + segment.n_rows);
  logits_ = logits;
  return {};
}

}  // namespace kvasir
