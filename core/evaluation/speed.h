// How fast an engine prefills and decodes, and where the time goes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/engine/engine.h"
#include "core/sampling/sampler.h"

namespace kvasir {

enum class SpeedMode : uint8_t { prefill, decode };

/// What is timed.
struct SpeedCase {
  SpeedMode mode = SpeedMode::decode;
  int64_t tokens = 0;  ///< evaluated in each sequence
  int64_t depth = 0;   ///< random tokens that each sequence holds before; filling is not timed
  int64_t batch = 1;   ///< sequences, each with keys and values of its own
};

/// The run of the median time.
struct SpeedResult {
  SpeedCase what;
  std::chrono::nanoseconds time{0};      ///< of the steps
  std::chrono::nanoseconds sampling{0};  ///< greedy, of every row of a decode; not part of `time`
  ForwardStatistics forward;

  double seconds() const { return std::chrono::duration<double>(time).count(); }
  double tokens_per_s() const { return static_cast<double>(what.tokens * what.batch) / seconds(); }
  double bytes_per_s() const { return static_cast<double>(forward.bytes()) / seconds(); }
  double multiply_adds_per_s() const {
    return static_cast<double>(forward.multiply_adds()) / seconds();
  }
};

/// Measures as llama-bench does: random tokens, nothing reused from earlier runs but the filled
/// depth, every position evaluated. A prefill takes steps of the engine's chunk and wants the
/// logits of its last row; a decode step evaluates one token of each sequence and wants the logits
/// of all, which are sampled greedily beside the clock. Keeps filled sequences from case to case.
class SpeedMeter {
 public:
  /// The engine must hold `batch` sequences of `depth + tokens` positions, and a step `batch` rows
  /// of logits, for all cases to come.
  explicit SpeedMeter(Engine& engine);

  /// One run that does not count, then `repetitions` that do. `progress` is called after each run
  /// (and each step of filling) and may be empty.
  Result<SpeedResult> measure(const SpeedCase& what, int repetitions,
                              const std::function<void()>& progress = {},
                              const CancelToken* cancel = nullptr);

 private:
  Status fill(const SpeedCase& what, const std::function<void()>& progress,
              const CancelToken* cancel);
  Status prefill(const SpeedCase& what, unsigned seed, SpeedResult& result,
                 const CancelToken* cancel);
  Status decode(const SpeedCase& what, unsigned seed, SpeedResult& result,
                const CancelToken* cancel);
  Status timed_step(std::span<const StepRequest> requests, SpeedResult& result,
                    const CancelToken* cancel);
  Status sample(int64_t n_rows, SpeedResult& result);

  Engine& engine_;
  Sampler sampler_;
  std::vector<std::unique_ptr<kv::Sequence>> sequences_;
};

}  // namespace kvasir
