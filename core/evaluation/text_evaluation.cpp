#include "core/evaluation/text_evaluation.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace kvasir {
namespace {

constexpr int64_t kLeastWindow = 4;

/// Scores rows of logits on all threads; every row has its own place in the results, so that who
/// scores it changes nothing.
class Scorer {
 public:
  Scorer(const Engine& engine, const TextWindows& windows, const LogitsFile* base)
      : windows_(windows),
        base_(base),
        n_vocab_(static_cast<size_t>(engine.model().n_vocab())),
        threads_(Threads::create(engine.threads())) {
    const auto n = static_cast<size_t>(windows.n_windows() * windows.scored_per_window());
    nll_.reserve(n);
    if (base == nullptr) return;
    kl_.reserve(n);
    base_nll_.reserve(n);
    same_best_.reserve(n);
    base_rows_.resize(n_vocab_ * static_cast<size_t>(engine.threads()));
  }

  /// `rows` [any number][n_vocab] follow the tokens from index `first` on, inside one window.
  Status score(int64_t first, std::span<const float> rows) {
    const int64_t context = windows_.context_tokens;
    const int64_t position = first % context;
    const int64_t skipped = std::max<int64_t>(0, windows_.first_scored() - position);
    const auto n_rows = static_cast<int64_t>(rows.size() / n_vocab_);
    // The window's last position predicts a token that is not there.
    const int64_t end = std::min(n_rows, context - 1 - position);
    if (end <= skipped) return {};
    const size_t before = nll_.size();
    resize(before + static_cast<size_t>(end - skipped));
    threads_->run([&](Team& team) {
      team.for_each(end - skipped, [&](int64_t i) {
        const auto row = static_cast<size_t>(skipped + i);
        score_row(team.thread(), before + static_cast<size_t>(i), first + skipped + i,
                  rows.subspan(row * n_vocab_, n_vocab_));
      });
    });
    return check_finite(before, first + skipped);
  }

  void summarise(TextEvaluation& evaluation) {
    evaluation.tokens_scored = static_cast<int64_t>(nll_.size());
    evaluation.perplexity = perplexity(nll_);
    if (base_ == nullptr) return;
    DivergenceSummary summary;
    summary.kl = mean(kl_);
    summary.base_perplexity = perplexity(base_nll_);
    summary.same_best_share =
        static_cast<double>(std::count(same_best_.begin(), same_best_.end(), uint8_t{1})) /
        static_cast<double>(same_best_.size());
    std::sort(kl_.begin(), kl_.end());
    summary.quantile_99 = quantile(kl_, 0.99);
    summary.quantile_999 = quantile(kl_, 0.999);
    summary.maximum = kl_.back();
    evaluation.divergence = summary;
  }

 private:
  void resize(size_t n) {
    nll_.resize(n);
    if (base_ == nullptr) return;
    kl_.resize(n);
    base_nll_.resize(n);
    same_best_.resize(n);
  }

  /// `slot` of the results, for the row after the token at `index`.
  void score_row(int thread, size_t slot, int64_t index, std::span<const float> logits) {
    const TokenId next = windows_.tokens[static_cast<size_t>(index + 1)];
    nll_[slot] = negative_log_likelihood(logits, next);
    if (base_ == nullptr) return;
    const auto base =
        std::span(base_rows_).subspan(n_vocab_ * static_cast<size_t>(thread), n_vocab_);
    base_->row(index, base);
    base_nll_[slot] = negative_log_likelihood(base, next);
    const auto found = divergence(base, logits);
    kl_[slot] = found.kl;
    same_best_[slot] = found.same_best ? 1 : 0;
  }

  Status check_finite(size_t first_slot, int64_t first_index) const {
    for (size_t slot = first_slot; slot < nll_.size(); ++slot) {
      const auto index = first_index + static_cast<int64_t>(slot - first_slot);
      if (base_ != nullptr && std::isnan(base_nll_[slot])) {
        return make_error(ErrorCode::non_finite,
                          "'{}': row {} of 'logits' has a NaN or +inf, or nothing finite",
                          base_->path(), index);
      }
      if (std::isnan(nll_[slot])) {
        return make_error(ErrorCode::non_finite,
                          "the logits of window {} at position {} are not finite",
                          index / windows_.context_tokens, index % windows_.context_tokens);
      }
    }
    return {};
  }

  const TextWindows& windows_;
  const LogitsFile* base_;
  const size_t n_vocab_;
  std::unique_ptr<Threads> threads_;
  std::vector<double> nll_, kl_, base_nll_;
  std::vector<uint8_t> same_best_;
  std::vector<float> base_rows_;  ///< [threads][n_vocab]
};

}  // namespace

Result<TextWindows> cut_into_windows(const Tokenizer& tokenizer, std::string_view text,
                                     int64_t context_tokens) {
  if (context_tokens < kLeastWindow) {
    return make_error(ErrorCode::invalid_argument,
                      "windows of {} tokens are too small: {} at least", context_tokens,
                      kLeastWindow);
  }
  auto ids = tokenizer.encode(text, SpecialTokens::as_text);
  if (!ids) return std::move(ids).error();
  TextWindows windows;
  windows.tokens = std::move(*ids);
  windows.context_tokens = context_tokens;
  auto& tokens = windows.tokens;
  const auto bos = tokenizer.adds_bos() ? tokenizer.bos() : std::nullopt;
  if (bos) tokens.insert(tokens.begin(), *bos);
  const auto n = static_cast<int64_t>(tokens.size());
  if (n < context_tokens) {
    return make_error(ErrorCode::limit_exceeded,
                      "the text has {} tokens, but one window needs {} (see --ctx)", n,
                      context_tokens);
  }
  windows.left_out = n % context_tokens;
  tokens.resize(static_cast<size_t>(n - windows.left_out));
  for (size_t i = 0; bos && i < tokens.size(); i += static_cast<size_t>(context_tokens))
    tokens[i] = *bos;
  return windows;
}

EngineOptions text_evaluation_engine(EngineOptions options, int64_t context_tokens) {
  options.context_tokens = context_tokens;
  options.prefill_chunk = std::min(options.prefill_chunk, context_tokens);
  options.max_logit_rows = options.prefill_chunk;
  options.max_sequences = 1;
  return options;
}

Result<TextEvaluation> evaluate_text(Engine& engine, const TextWindows& windows,
                                     const TextEvaluationOptions& options) {
  const int64_t context = windows.context_tokens;
  const auto total = static_cast<int64_t>(windows.tokens.size());
  if (options.base != nullptr) {
    if (auto s = options.base->check(windows.tokens, context, engine.model().n_vocab()); !s)
      return std::move(s).error();
  }
  const auto start = std::chrono::steady_clock::now();
  auto sequence = engine.new_sequence();
  if (!sequence) return std::move(sequence).error();
  Scorer scorer(engine, windows, options.base);
  TextEvaluation evaluation;
  for (int64_t done = 0; done < total;) {
    const int64_t position = done % context;
    if (position == 0) {
      if (auto s = (*sequence)->rewind(0); !s) return std::move(s).error();
    }
    // Rows that are neither scored nor saved need no logits.
    const bool silent = options.save == nullptr && position < windows.first_scored();
    const int64_t end = silent ? windows.first_scored() : context;
    const int64_t n = std::min(engine.options().prefill_chunk, end - position);
    const StepRequest request = {
        sequence->get(),
        std::span(windows.tokens).subspan(static_cast<size_t>(done), static_cast<size_t>(n)),
        !silent, false};
    if (auto s = engine.step({&request, 1}, options.cancel); !s) return std::move(s).error();
    evaluation.forward.add(engine.last_step());
    if (options.save != nullptr) {
      if (auto s = options.save->write(engine.logits()); !s) return std::move(s).error();
    }
    if (auto s = scorer.score(done, engine.logits()); !s) return std::move(s).error();
    done += n;
    if (options.progress) options.progress(done, total);
  }
  evaluation.tokens_evaluated = total;
  scorer.summarise(evaluation);
  evaluation.time = std::chrono::steady_clock::now() - start;
  return evaluation;
}

}  // namespace kvasir
