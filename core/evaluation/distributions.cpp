#include "core/evaluation/distributions.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/numerics/elementary.h"

namespace kvasir {
namespace {

size_t best(std::span<const float> logits) {
  return static_cast<size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace

double log_sum_exp(std::span<const float> logits) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  double most = -std::numeric_limits<double>::infinity();
  for (const float x : logits) {
    if (std::isnan(x)) return kNone;
    most = std::max(most, static_cast<double>(x));
  }
  if (!std::isfinite(most)) return kNone;
  double sum = 0;
  for (const float x : logits) sum += numerics::exp(static_cast<double>(x) - most);
  return most + numerics::log(sum);
}

double negative_log_likelihood(std::span<const float> logits, int32_t token) {
  return log_sum_exp(logits) - static_cast<double>(logits[static_cast<size_t>(token)]);
}

RowDivergence divergence(std::span<const float> reference, std::span<const float> logits) {
  const double log_sum_p = log_sum_exp(reference);
  const double log_sum_q = log_sum_exp(logits);
  double kl = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double log_p = static_cast<double>(reference[i]) - log_sum_p;
    const double p = numerics::exp(log_p);
    if (p > 0) kl += p * (log_p - (static_cast<double>(logits[i]) - log_sum_q));
  }
  return {std::isfinite(log_sum_p) ? kl : log_sum_p, best(reference) == best(logits)};
}

Mean mean(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  if (values.empty()) return {};
  double sum = 0;
  for (const double v : values) sum += v;
  const double mean = sum / n;
  double squares = 0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  return {mean, values.size() < 2 ? 0 : std::sqrt(squares / (n - 1) / n)};
}

Mean perplexity(std::span<const double> negative_log_likelihoods) {
  const Mean nll = mean(negative_log_likelihoods);
  const double value = numerics::exp(nll.value);
  return {value, value * nll.standard_error};
}

double quantile(std::span<const double> ascending, double q) {
  const double at = q * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, ascending.size() - 1);
  return ascending[below] +
         (at - static_cast<double>(below)) * (ascending[above] - ascending[below]);
}

}  // namespace kvasir
