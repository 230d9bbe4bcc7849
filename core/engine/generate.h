// Generation: prompt in, text out as it comes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/session.h"
#include "core/sampling/sampler.h"
#include "core/text/text_stream.h"
#include "core/text/tokenizer.h"

namespace kvasir {

struct GenerateOptions {
  SamplingParameters sampling;
  int64_t max_tokens = 0;                 ///< 0: until the context is full
  std::vector<std::string> stop_strings;  ///< compared as bytes; never part of the text
  std::vector<TokenId> end_tokens;        ///< each ends the answer
  int32_t n_logprobs = 0;
  bool ignore_end_tokens = false;
};

enum class FinishReason : uint8_t { stop, length, context_full, cancelled };
std::string_view finish_reason_name(FinishReason reason);  ///< "stop", "length", ...

struct Generation {
  std::string text;              ///< valid UTF-8, equals the joined deltas
  std::vector<TokenId> tokens;   ///< sampled, the end token included
  std::vector<SampledToken> logprobs;  ///< when n_logprobs > 0, one a token
  FinishReason finish_reason = FinishReason::length;
  EvaluationStatistics prefill;
  EvaluationStatistics decode;
};

struct GenerateCallbacks {
  std::function<void(std::string_view delta)> on_text;
  Session::Progress on_prefill;
};

/// Ids of a text that is given to the model as it is: control tokens in it are recognised, and BOS
/// comes first when the model's file says so. invalid_argument when nothing is left to evaluate.
Result<std::vector<TokenId>> raw_prompt(const Tokenizer& tokenizer, std::string_view text);

/// Evaluates `prompt` (what the session already holds is kept) and samples until an end token, a
/// stop string, max_tokens, the end of the context or a cancellation. Afterwards the session holds
/// exactly the prompt and the sampled tokens that were evaluated (the last one never is).
/// limit_exceeded when the prompt leaves no room for an answer, naming both numbers.
Result<Generation> generate(Session& session, const Tokenizer& tokenizer,
                            const std::vector<TokenId>& prompt, const GenerateOptions& options,
                            const GenerateCallbacks& callbacks = {},
                            const CancelToken* cancel = nullptr);

}  // namespace kvasir
