// A session: one growing sequence of tokens and what is known about it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/engine/engine.h"

namespace kvasir {

/// Tokens and time of one evaluation.
struct EvaluationStatistics {
  int64_t tokens_evaluated = 0;
  int64_t tokens_cached = 0;              ///< asked for, but already in the KV store
  int64_t tokens_reevaluated = 0;         ///< evaluated though they were common with what was held:
                                          ///< a window had dropped what the next query sees
  std::vector<int64_t> chunks;            ///< rows of each step of `evaluate`, in order
  ForwardStatistics forward;
};

/// One sequence with its tokens. Not thread-safe; cancelling from another thread is.
class Session {
 public:
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<Engine> engine);

  /// Called after each chunk with tokens done and tokens to do; may be empty.
  using Progress = std::function<void(int64_t done, int64_t total)>;

  /// Makes the session hold exactly `tokens`: keeps the longest common prefix (but always
  /// evaluates the last token anew, so that logits are there), evaluates the rest in chunks. Where a
  /// window has dropped what the first new token sees, everything is evaluated (tokens_reevaluated).
  /// limit_exceeded names both numbers when they do not fit the context. Cancelled: holds the
  /// chunks that were finished.
  Status evaluate(std::span<const TokenId> tokens, const Progress& progress = {},
                  const CancelToken* cancel = nullptr);

  /// One more token.
  Status append(TokenId token, const CancelToken* cancel = nullptr);

  /// Forgets tokens from `length` on; the logits are stale until something is evaluated. Fails, with
  /// nothing changed, when a window has dropped what a token at `length` sees.
  Status rewind(int64_t length);

  /// Logits after the last token [n_vocab]; empty when nothing has been evaluated since a rewind.
  std::span<const float> logits() const;
  /// xxh3-64 of the logits' bytes: equal hashes mean equal bits.
  uint64_t logits_hash() const;

  const std::vector<TokenId>& tokens() const { return tokens_; }
  int64_t context_tokens() const { return engine_->options().context_tokens; }
  Engine& engine() { return *engine_; }

  /// Sums since the last reset.
  const EvaluationStatistics& statistics() const { return statistics_; }
  void reset_statistics() { statistics_ = {}; }

 private:
  Session() = default;
  Status evaluate_chunk(std::span<const TokenId> tokens, bool want_logits,
                        const CancelToken* cancel);

  std::shared_ptr<Engine> engine_;
  std::unique_ptr<kv::Sequence> sequence_;
  std::vector<TokenId> tokens_;
  std::vector<float> logits_;
  EvaluationStatistics statistics_;
};

}  // namespace kvasir
