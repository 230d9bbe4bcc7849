// An engine: one model, its threads, its KV pools and its scratch, evaluating ragged batches.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/engine/model.h"
#include "core/kv/sequence.h"
#include "kvasir/cancel.h"
#include "kvasir/result.h"

namespace kvasir {

/// How logits are computed: bit for bit everywhere, or with a library's faster dense products.
enum class MathMode : uint8_t { reproducible, fast };

struct EngineOptions {
  int64_t context_tokens = 0;   ///< positions a sequence may have; 0: the model's trained length
  int64_t prefill_chunk = 512;  ///< most rows of one step; changes speed and memory, never bits
  int threads = 0;              ///< 0: advise_threads()
  std::optional<kv::KvType> kv_type = std::nullopt;  ///< nothing: f32 for f32 models, else f16
  MathMode math = MathMode::reproducible;
  int64_t max_sequences = 1;    ///< sequences alive at one time; the KV budget is for all of them
  int64_t max_logit_rows = 1;   ///< most rows of one step whose logits are wanted
};

/// Bytes an engine needs, known before anything is allocated.
struct MemoryPlan {
  size_t weight_bytes = 0;
  size_t kv_bytes_per_token = 0;
  size_t kv_bytes = 0;       ///< at context_tokens for every sequence
  size_t scratch_bytes = 0;  ///< activations, logits, tables
  int64_t context_tokens = 0;
  kv::KvType kv_type = kv::KvType::f16;
  size_t total_bytes() const { return weight_bytes + kv_bytes + scratch_bytes; }
};

/// One sequence's part of a step.
struct StepRequest {
  kv::Sequence* sequence = nullptr;
  std::span<const TokenId> tokens;  ///< appended at sequence->length()
  bool all_logits = false;          ///< of every token; otherwise of none but ...
  bool last_logits = false;         ///< ... the last
};

/// `step` may be called by one thread at a time (it locks); sequences belong to the caller.
class Engine {
 public:
  /// Fails with invalid_argument naming an option that is out of range, or out_of_memory. Whether
  /// the plan fits the machine is looked at before weights are packed (load_model).
  static Result<std::unique_ptr<Engine>> create(std::shared_ptr<const Model> model,
                                                EngineOptions options);
  static MemoryPlan plan(const Model& model, const EngineOptions& options);

  /// An empty sequence; it takes blocks only as it grows. The pools hold max_sequences of full
  /// length; what exceeds them is refused by `step`.
  Result<std::unique_ptr<kv::Sequence>> new_sequence();

  /// Evaluates the requests together as one batch (their tokens' sum is at most prefill_chunk)
  /// and commits them. Logits land in `logits()` [asked rows in order][n_vocab]. On an error or
  /// cancellation no sequence has changed.
  Status step(std::span<const StepRequest> requests, const CancelToken* cancel = nullptr);

  std::span<const float> logits() const { return logits_; }

  const Model& model() const { return *model_; }
  const EngineOptions& options() const { return options_; }  ///< as resolved: nothing is 0
  const MemoryPlan& memory_plan() const { return plan_; }
  const ForwardStatistics& last_step() const { return last_step_; }
  int threads() const { return threads_->count(); }
  /// --math fast: a line for each shape of dense products; else empty.
  std::vector<std::string> fast_math_choices() const { return state_->fast_math_choices(); }
  const kv::Pools& pools() const { return pools_; }

 private:
  Engine() = default;

  std::shared_ptr<const Model> model_;
  EngineOptions options_;
  MemoryPlan plan_;
  std::unique_ptr<Threads> threads_;
  std::unique_ptr<ModelState> state_;
  kv::Pools pools_;
  std::mutex mutex_;
  AlignedBuffer logits_memory_;
  std::span<float> logits_;
  std::vector<TokenId> tokens_;
  std::vector<BatchSegment> segments_;
  std::vector<int64_t> logit_rows_;
  ForwardStatistics last_step_;
};

}  // namespace kvasir
