#include "core/engine/session.h"

#include <xxhash.h>

#include <algorithm>

#include "core/base/error.h"

namespace kvasir {

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<Engine> engine) {
  auto sequence = engine->new_sequence();
  if (!sequence) return std::move(sequence).error();
  std::unique_ptr<Session> session(new Session());
  session->engine_ = std::move(engine);
  session->sequence_ = std::move(*sequence);
  session->tokens_.reserve(static_cast<size_t>(session->context_tokens()));
  session->logits_.reserve(static_cast<size_t>(session->engine_->model().n_vocab()));
  return session;
}

Status Session::evaluate_chunk(std::span<const TokenId> tokens, bool want_logits,
                               const CancelToken* cancel) {
  const StepRequest request = {sequence_.get(), tokens, false, want_logits};
  if (auto s = engine_->step({&request, 1}, cancel); !s) return s;
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  const auto logits = engine_->logits();
  logits_.assign(logits.begin(), logits.end());
  statistics_.tokens_evaluated += static_cast<int64_t>(tokens.size());
  statistics_.forward.add(engine_->last_step());
  return {};
}

Status Session::evaluate(std::span<const TokenId> tokens, const Progress& progress,
                         const CancelToken* cancel) {
  if (tokens.empty())
    return make_error(ErrorCode::invalid_argument, "there are no tokens to evaluate");
  if (static_cast<int64_t>(tokens.size()) > context_tokens()) {
    return make_error(ErrorCode::limit_exceeded,
                      "{} tokens do not fit a context of {} tokens (see --ctx)", tokens.size(),
                      context_tokens());
  }
  // The logits of the last token are needed, so at most all but one token can be kept.
  const size_t most = std::min(tokens.size() - 1, tokens_.size());
  const auto common = static_cast<size_t>(
      std::mismatch(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(most),
                    tokens_.begin())
          .first -
      tokens.begin());
  if (common < tokens_.size()) {
    // A window may have dropped what the position needs; then everything is evaluated again.
    if (!rewind(static_cast<int64_t>(common))) {
      if (auto s = rewind(0); !s) return s;
      statistics_.tokens_reevaluated += static_cast<int64_t>(common);
    }
  }
  size_t done = tokens_.size();
  statistics_.tokens_cached += static_cast<int64_t>(done);
  const size_t to_do = tokens.size() - done;
  const auto chunk = static_cast<size_t>(engine_->options().prefill_chunk);
  for (size_t end; done < tokens.size(); done = end) {
    end = std::min(tokens.size(), done + chunk);
    if (auto s = evaluate_chunk(tokens.subspan(done, end - done), end == tokens.size(), cancel); !s)
      return s;
    statistics_.chunks.push_back(static_cast<int64_t>(end - done));
    if (progress)
      progress(static_cast<int64_t>(end + to_do - tokens.size()), static_cast<int64_t>(to_do));
  }
  return {};
}

Status Session::append(TokenId token, const CancelToken* cancel) {
  return evaluate_chunk({&token, 1}, true, cancel);
}

Status Session::rewind(int64_t length) {
  if (auto s = sequence_->rewind(length); !s) return s;
  tokens_.resize(static_cast<size_t>(length));
  logits_.clear();
  return {};
}

std::span<const float> Session::logits() const { return logits_; }

uint64_t Session::logits_hash() const {
  return XXH3_64bits(logits_.data(), logits_.size() * sizeof(float));
}

}  // namespace kvasir
