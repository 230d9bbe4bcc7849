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

LogPartition log_partition(std::span<const float> logits) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  double most = -std::numeric_limits<double>::infinity();
  for (const float x : logits) {
    if (std::isnan(x)) return {kNone, kNone};
    most = std::max(most, static_cast<double>(x));
  }
  if (!std::isfinite(most)) return {kNone, kNone};
  double sum = 0;
  for (const float x : logits) sum += numerics::exp(static_cast<double>(x) - most);
  return {most, numerics::log(sum)};
}

double negative_log_likelihood(std::span<const float> logits, int32_t token) {
  return -log_partition(logits).log_probability(logits[static_cast<size_t>(token)]);
}

RowDivergence divergence(std::span<const float> reference, std::span<const float> logits) {
  const LogPartition partition_p = log_partition(reference);
  const LogPartition partition_q = log_partition(logits);
  double kl = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double log_p = partition_p.log_probability(reference[i]);
    const double p = numerics::exp(log_p);
    if (p > 0) kl += p * (log_p - partition_q.log_probability(logits[i]));
  }
  return {std::isnan(partition_p.most) ? partition_p.most : kl, best(reference) == best(logits)};
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
