// What rows of logits say about tokens and about each other, in double precision, with our own exp
// and log: the same figures on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kvasir {

/// What softmax divides by, in two parts, so that large logits lose no digits:
/// log(sum over i of exp(logits[i])) = most + log_sum.
struct LogPartition {
  double most = 0;     ///< the largest logit; NaN when one is NaN or +inf, or none is finite
  double log_sum = 0;  ///< log(sum of exp(logits[i] - most)), summed in ascending i

  /// log softmax of a logit of this row; -inf is probability 0.
  double log_probability(float logit) const {
    return (static_cast<double>(logit) - most) - log_sum;
  }
};
LogPartition log_partition(std::span<const float> logits);

/// -log softmax(logits)[token], in nats. NaN when the row is no distribution.
double negative_log_likelihood(std::span<const float> logits, int32_t token);

/// One row against a reference's row of equal length.
struct RowDivergence {
  double kl = 0;           ///< sum of p (log p - log q), p the reference's softmax, in nats
  bool same_best = false;  ///< the likeliest token is the same (of equals the lowest id)
};
RowDivergence divergence(std::span<const float> reference, std::span<const float> logits);

/// Mean of a sample and the standard error of that mean (0 for fewer than two values).
struct Mean {
  double value = 0;
  double standard_error = 0;
};
Mean mean(std::span<const double> values);

/// exp of the mean negative log-likelihood; its error to first order: value * error of the mean.
Mean perplexity(std::span<const double> negative_log_likelihoods);

/// The value below which a share `q` of the sorted values lies, interpolated as numpy.quantile
/// does by default. `ascending` is not empty.
double quantile(std::span<const double> ascending, double q);

}  // namespace kvasir
