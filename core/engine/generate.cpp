#include "core/engine/generate.h"

#include <algorithm>

#include "core/base/error.h"

namespace kvasir {
namespace {

bool ends(const GenerateOptions& options, TokenId token) {
  return !options.ignore_end_tokens &&
         std::find(options.end_tokens.begin(), options.end_tokens.end(), token) !=
             options.end_tokens.end();
}

/// One answer in the making.
class Answer {
 public:
  Answer(const Tokenizer& tokenizer, const GenerateOptions& options,
         const GenerateCallbacks& callbacks)
      : tokenizer_(tokenizer), callbacks_(callbacks), stream_(options.stop_strings) {}

  /// True when the token's bytes completed a stop string.
  bool add(TokenId token) {
    give(stream_.push(tokenizer_.token_bytes(token)));
    return stream_.stopped();
  }
  void finish() { give(stream_.finish()); }
  std::string take_text() { return std::move(text_); }

 private:
  void give(const std::string& delta) {
    if (delta.empty()) return;
    text_ += delta;
    if (callbacks_.on_text) callbacks_.on_text(delta);
  }

  const Tokenizer& tokenizer_;
  const GenerateCallbacks& callbacks_;
  TextStream stream_;
  std::string text_;
};

}  // namespace

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop: return "stop";
    case FinishReason::length: return "length";
    case FinishReason::context_full: return "context_full";
    case FinishReason::cancelled: return "cancelled";
  }
  return "unknown";
}

Result<std::vector<TokenId>> raw_prompt(const Tokenizer& tokenizer, std::string_view text) {
  auto ids = tokenizer.encode(text, SpecialTokens::parse);
  if (!ids) return ids;
  if (tokenizer.adds_bos() && tokenizer.bos()) ids->insert(ids->begin(), *tokenizer.bos());
  if (ids->empty()) return make_error(ErrorCode::invalid_argument, "the prompt is empty");
  return ids;
}

Result<Generation> generate(Session& session, const Tokenizer& tokenizer,
                            const std::vector<TokenId>& prompt, const GenerateOptions& options,
                            const GenerateCallbacks& callbacks, const CancelToken* cancel) {
  if (auto s = validate(options.sampling); !s) return std::move(s).error();
  if (static_cast<int64_t>(prompt.size()) >= session.context_tokens()) {
    return make_error(ErrorCode::limit_exceeded,
                      "the prompt has {} tokens and leaves no room for an answer in a context of "
                      "{} tokens (see --ctx)",
                      prompt.size(), session.context_tokens());
  }
  Generation result;
  Answer answer(tokenizer, options, callbacks);
  session.reset_statistics();
  auto evaluated = session.evaluate(prompt, callbacks.on_prefill, cancel);
  result.prefill = session.statistics();
  session.reset_statistics();
  if (!evaluated) {
    if (evaluated.error().code != ErrorCode::cancelled) return std::move(evaluated).error();
    result.finish_reason = FinishReason::cancelled;
    return result;
  }

  Sampler sampler(options.sampling, 0, session.engine().model().n_vocab());
  std::vector<TokenId> seen = prompt;
  for (uint64_t step = 0;; ++step) {
    if (cancel != nullptr && cancel->requested()) {
      result.finish_reason = FinishReason::cancelled;
      break;
    }
    auto sampled = sampler.sample(session.logits(), seen, step, options.n_logprobs);
    if (!sampled) return std::move(sampled).error();
    const TokenId token = sampled->token;
    result.tokens.push_back(token);
    seen.push_back(token);
    if (options.n_logprobs > 0) result.logprobs.push_back(std::move(*sampled));
    if (ends(options, token) || answer.add(token)) {
      result.finish_reason = FinishReason::stop;
      break;
    }
    if (options.max_tokens > 0 && static_cast<int64_t>(result.tokens.size()) >= options.max_tokens) {
      result.finish_reason = FinishReason::length;
      break;
    }
    if (static_cast<int64_t>(session.tokens().size()) >= session.context_tokens()) {
      result.finish_reason = FinishReason::context_full;
      break;
    }
    if (auto s = session.append(token, cancel); !s) {
      if (s.error().code != ErrorCode::cancelled) return std::move(s).error();
      result.finish_reason = FinishReason::cancelled;
      break;
    }
  }
  answer.finish();
  result.text = answer.take_text();
  result.decode = session.statistics();
  return result;
}

}  // namespace kvasir
