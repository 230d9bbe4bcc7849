#include "core/sampling/sampler.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/numerics/elementary.h"
#include "core/sampling/philox.h"

namespace kvasir {
namespace {

Status check_range(const char* name, double value, double least, double most) {
  if (value >= least && value <= most) return {};  // false for NaN
  return make_error(ErrorCode::invalid_argument, "{} is {}, but must be from {} to {}", name, value,
                    least, most);
}

Error non_finite(size_t token, float logit) {
  return make_error(ErrorCode::non_finite, "the logit of token {} is {}", token, logit);
}

bool before(float a_logit, int32_t a_token, float b_logit, int32_t b_token) {
  return a_logit != b_logit ? a_logit > b_logit : a_token < b_token;
}

/// Raw log-probabilities of the n most likely tokens and of `chosen`.
void add_logprobs(std::span<const float> logits, int32_t n, SampledToken& chosen) {
  const float best = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits)
    sum += numerics::exp(static_cast<double>(logit) - static_cast<double>(best));
  const double log_sum = numerics::log(sum) + static_cast<double>(best);
  const auto logprob = [&](int32_t token) {
    return static_cast<float>(static_cast<double>(logits[static_cast<size_t>(token)]) - log_sum);
  };
  chosen.logprob = logprob(chosen.token);
  std::vector<int32_t> order(logits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  const auto count = std::min<size_t>(static_cast<size_t>(n), order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](int32_t a, int32_t b) {
                      return before(logits[static_cast<size_t>(a)], a,
                                    logits[static_cast<size_t>(b)], b);
                    });
  for (size_t i = 0; i < count; ++i) chosen.top.push_back({order[i], logprob(order[i])});
}

}  // namespace

Status validate(const SamplingParameters& p) {
  const struct {
    const char* name;
    double value, least, most;
  } fields[] = {
      {"temperature", p.temperature, 0, 1000},
      {"top-k", static_cast<double>(p.top_k), 0, 2147483647},
      {"top-p", p.top_p, 0, 1},
      {"min-p", p.min_p, 0, 1},
      {"repetition penalty", p.repetition_penalty, 1e-6, 1e6},
      {"presence penalty", p.presence_penalty, -1e6, 1e6},
      {"frequency penalty", p.frequency_penalty, -1e6, 1e6},
  };
  for (const auto& field : fields) {
    if (auto s = check_range(field.name, field.value, field.least, field.most); !s) return s;
  }
  return {};
}

Sampler::Sampler(SamplingParameters parameters, uint64_t sequence, int64_t n_vocab)
    : parameters_(parameters),
      sequence_(sequence),
      adjusted_(static_cast<size_t>(n_vocab)),
      counts_(static_cast<size_t>(n_vocab), 0) {}

void Sampler::penalise(std::span<const int32_t> seen) {
  const bool none = parameters_.repetition_penalty == 1.0F &&
                    parameters_.presence_penalty == 0.0F && parameters_.frequency_penalty == 0.0F;
  if (none) return;
  const auto in_vocabulary = [&](int32_t token) {
    return token >= 0 && static_cast<size_t>(token) < counts_.size();
  };
  for (const int32_t token : seen)
    if (in_vocabulary(token)) counts_[static_cast<size_t>(token)]++;
  for (const int32_t token : seen) {
    if (!in_vocabulary(token)) continue;
    int32_t& count = counts_[static_cast<size_t>(token)];
    if (count == 0) continue;  // done already
    float& logit = adjusted_[static_cast<size_t>(token)];
    logit = logit > 0 ? logit / parameters_.repetition_penalty
                      : logit * parameters_.repetition_penalty;
    logit -= parameters_.presence_penalty;
    logit -= parameters_.frequency_penalty * static_cast<float>(count);
    count = 0;
  }
}

Status Sampler::prepare(std::span<const float> logits, std::span<const int32_t> seen) {
  bool any_finite = false;
  for (size_t i = 0; i < logits.size(); ++i) {
    const float logit = logits[i];
    if (!(logit < INFINITY)) return non_finite(i, logit);  // NaN and +inf
    any_finite = any_finite || logit > -INFINITY;
  }
  if (!any_finite) {
    return make_error(ErrorCode::non_finite, "none of the {} logits is finite", logits.size());
  }
  adjusted_.assign(logits.begin(), logits.end());
  counts_.resize(logits.size());
  penalise(seen);
  return {};
}

void Sampler::cut_top_p() {
  if (parameters_.top_p >= 1.0F) return;
  double total = 0;
  for (const auto& c : candidates_) total += c.weight;
  const double wanted = static_cast<double>(parameters_.top_p) * total;
  double sum = 0;
  size_t kept = 0;
  while (kept < candidates_.size()) {
    sum += candidates_[kept].weight;
    ++kept;
    if (sum >= wanted) break;
  }
  candidates_.resize(std::max<size_t>(kept, 1));
}

void Sampler::cut() {
  candidates_.clear();
  for (size_t i = 0; i < adjusted_.size(); ++i) {
    if (adjusted_[i] > -INFINITY) candidates_.push_back({adjusted_[i], static_cast<int32_t>(i), 0});
  }
  const auto order = [](const Candidate& a, const Candidate& b) {
    return before(a.logit, a.token, b.logit, b.token);
  };
  if (parameters_.top_k > 0 && static_cast<size_t>(parameters_.top_k) < candidates_.size()) {
    const auto kth = candidates_.begin() + parameters_.top_k;
    std::nth_element(candidates_.begin(), kth, candidates_.end(), order);
    candidates_.erase(kth, candidates_.end());
  }
  std::sort(candidates_.begin(), candidates_.end(), order);
  const double best = candidates_.front().logit;
  const double temperature = parameters_.temperature;
  const auto weigh = [&](double divisor) {
    for (auto& c : candidates_) c.weight = numerics::exp((static_cast<double>(c.logit) - best) / divisor);
  };
  if (parameters_.order == SamplerOrder::top_p_first) {
    weigh(1.0);
    cut_top_p();
    weigh(temperature);
  } else {
    weigh(temperature);
    cut_top_p();
  }
  if (parameters_.min_p > 0) {
    // The best candidate weighs 1, so min_p is the bound itself.
    size_t kept = 1;
    while (kept < candidates_.size() &&
           candidates_[kept].weight >= static_cast<double>(parameters_.min_p))
      ++kept;
    candidates_.resize(kept);
  }
}

Result<std::vector<std::pair<int32_t, float>>> Sampler::distribution(
    std::span<const float> logits, std::span<const int32_t> seen) {
  if (auto s = validate(parameters_); !s) return std::move(s).error();
  if (auto s = prepare(logits, seen); !s) return std::move(s).error();
  if (parameters_.temperature == 0.0F) {
    const auto best = std::max_element(adjusted_.begin(), adjusted_.end());
    return std::vector<std::pair<int32_t, float>>{
        {static_cast<int32_t>(best - adjusted_.begin()), 1.0F}};
  }
  cut();
  double total = 0;
  for (const auto& c : candidates_) total += c.weight;
  std::vector<std::pair<int32_t, float>> result;
  for (const auto& c : candidates_)
    result.emplace_back(c.token, static_cast<float>(c.weight / total));
  return result;
}

Result<SampledToken> Sampler::sample(std::span<const float> logits, std::span<const int32_t> seen,
                                     uint64_t step, int32_t n_logprobs) {
  if (auto s = validate(parameters_); !s) return std::move(s).error();
  if (auto s = prepare(logits, seen); !s) return std::move(s).error();
  SampledToken sampled;
  if (parameters_.temperature == 0.0F) {
    const auto best = std::max_element(adjusted_.begin(), adjusted_.end());  // the first of equals
    sampled.token = static_cast<int32_t>(best - adjusted_.begin());
  } else {
    cut();
    double total = 0;
    for (const auto& c : candidates_) total += c.weight;
    const double target = uniform_draw(parameters_.seed, sequence_, step) * total;
    double sum = 0;
    sampled.token = candidates_.back().token;  // should rounding leave the sum below the target
    for (const auto& c : candidates_) {
      sum += c.weight;
      if (target < sum) {
        sampled.token = c.token;
        break;
      }
    }
  }
  if (n_logprobs > 0) add_logprobs(logits, n_logprobs, sampled);
  return sampled;
}

}  // namespace kvasir
