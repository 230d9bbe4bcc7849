// How well a model predicts a text, alone and beside a reference.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/engine/engine.h"
#include "core/evaluation/distributions.h"
#include "core/evaluation/logits_file.h"
#include "core/text/tokenizer.h"

namespace kvasir {

/// A text cut into windows that are evaluated each from an empty context.
struct TextWindows {
  std::vector<TokenId> tokens;  ///< [n_windows * context_tokens], window after window
  int64_t context_tokens = 0;
  int64_t left_out = 0;  ///< tokens at the end that fill no window

  int64_t n_windows() const { return static_cast<int64_t>(tokens.size()) / context_tokens; }
  /// The first position whose prediction counts; from there each predicts the next position.
  int64_t first_scored() const { return context_tokens / 2; }
  int64_t scored_per_window() const { return context_tokens - 1 - first_scored(); }
};

/// The rule that llama.cpp's perplexity follows. The text's tokens (control tokens' spelling is
/// text; BOS first where the model adds one) are cut into windows of `context_tokens` that do not
/// overlap; what is left at the end is left out. Where the model adds BOS it then takes the place
/// of the first token of every window. limit_exceeded, with both numbers, when the text fills no
/// window; invalid_argument when windows of fewer than 4 tokens are asked for.
Result<TextWindows> cut_into_windows(const Tokenizer& tokenizer, std::string_view text,
                                     int64_t context_tokens);

/// Kullback-Leibler divergences from a reference's distributions, in nats.
struct DivergenceSummary {
  Mean kl;
  double quantile_99 = 0;
  double quantile_999 = 0;
  double maximum = 0;
  double same_best_share = 0;  ///< of the rows
  Mean base_perplexity;        ///< the reference's own, on the same tokens
};

struct TextEvaluation {
  int64_t tokens_evaluated = 0;
  int64_t tokens_scored = 0;
  Mean perplexity;
  std::optional<DivergenceSummary> divergence;
  ForwardStatistics forward;
  std::chrono::duration<double> time{0};  ///< of the model's steps and the scoring
};

struct TextEvaluationOptions {
  const LogitsFile* base = nullptr;  ///< what to measure divergences from; of the same tokens
  LogitsWriter* save = nullptr;      ///< takes all logits; the caller finishes it
  std::function<void(int64_t done, int64_t total)> progress;  ///< tokens; may be empty
  const CancelToken* cancel = nullptr;
};

/// Engine options that an evaluation of windows of `context_tokens` needs.
EngineOptions text_evaluation_engine(EngineOptions options, int64_t context_tokens);

/// Evaluates every window and scores its second half: positions first_scored() to the last but
/// one. The engine's chunks and threads change no figure but the time. non_finite names the window
/// and position of a row (or the base's row) that is no distribution.
Result<TextEvaluation> evaluate_text(Engine& engine, const TextWindows& windows,
                                     const TextEvaluationOptions& options = {});

}  // namespace kvasir
