#include "core/evaluation/distributions.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace kvasir;  // NOLINT

namespace {

// A double sum of up to a thousand terms of like size: 1000 * 2^-53, and exp and log of 2 ULP.
constexpr double kTolerance = 1e-12;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool near(double a, double b) {
  return std::abs(a - b) <= kTolerance * std::max(1.0, std::abs(b));
}

}  // namespace

TEST_CASE("given equal logits, when a token is scored, then it has one share of n") {
  for (const size_t n : {1U, 2U, 17U, 1000U}) {
    for (const float level : {0.0F, -1e4F, 3e38F}) {
      const std::vector<float> logits(n, level);
      CHECK(near(negative_log_likelihood(logits, 0), std::log(static_cast<double>(n))));
    }
  }
}

TEST_CASE("given probabilities 1/4 and 3/4, when scored, then the losses are their logarithms") {
  const std::vector<float> logits = {0, std::log(3.0F)};
  // log(3) rounded to float: 2e-8 off.
  CHECK(std::abs(negative_log_likelihood(logits, 0) - std::log(4.0)) < 1e-7);
  CHECK(std::abs(negative_log_likelihood(logits, 1) - std::log(4.0 / 3)) < 1e-7);
}

TEST_CASE(
    "given logits of -inf, when scored, then they count as impossible and NaN does not hide") {
  const std::vector<float> masked = {2, -kInfinity, 2};
  CHECK(near(negative_log_likelihood(masked, 0), std::log(2.0)));
  CHECK(negative_log_likelihood(masked, 1) == std::numeric_limits<double>::infinity());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& bad :
       {std::vector<float>{1, nan}, {nan, 1}, {1, kInfinity}, {-kInfinity, -kInfinity}}) {
    CHECK(std::isnan(negative_log_likelihood(bad, 0)));
    CHECK(std::isnan(divergence(bad, std::vector<float>{0, 0}).kl));
    CHECK(std::isnan(divergence(std::vector<float>{0, 0}, bad).kl));
  }
}

TEST_CASE("given two distributions, when compared, then KL is p log(p/q) and is not symmetric") {
  // p = (1/2, 1/2), q = (1/5, 4/5) up to the float logarithm of 4.
  const std::vector<float> p = {0, 0}, q = {0, std::log(4.0F)};
  const double forward = 0.5 * std::log(0.5 / 0.2) + 0.5 * std::log(0.5 / 0.8);
  const double backward = 0.2 * std::log(0.2 / 0.5) + 0.8 * std::log(0.8 / 0.5);
  CHECK(std::abs(divergence(p, q).kl - forward) < 1e-7);
  CHECK(std::abs(divergence(q, p).kl - backward) < 1e-7);
  CHECK(divergence(p, p).kl == 0);
  CHECK_FALSE(divergence(p, q).same_best);  // of equals the lowest id
  CHECK(divergence(p, std::vector<float>{1, 0}).same_best);
  const std::vector<float> masked = {-kInfinity, 0};
  CHECK(near(divergence(masked, p).kl, std::log(2.0)));  // 0 log 0 is 0
  CHECK(divergence(p, masked).kl == std::numeric_limits<double>::infinity());
}

TEST_CASE("given 1, 2, 3, 4, when summarised, then mean, error and quantiles are NumPy's") {
  const std::vector<double> values = {1, 2, 3, 4};
  const Mean m = mean(values);
  CHECK(m.value == 2.5);
  CHECK(near(m.standard_error, std::sqrt(5.0 / 3 / 4)));  // numpy.std(ddof=1) / sqrt(4)
  CHECK(quantile(values, 0) == 1);
  CHECK(quantile(values, 0.5) == 2.5);
  CHECK(near(quantile(values, 0.99), 3.97));
  CHECK(quantile(values, 1) == 4);
  CHECK(mean(std::vector<double>{7}).standard_error == 0);
  CHECK(mean({}).value == 0);
  const Mean p = perplexity(values);
  CHECK(near(p.value, std::exp(2.5)));
  CHECK(near(p.standard_error, std::exp(2.5) * m.standard_error));
}
