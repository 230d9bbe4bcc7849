#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/sampling/philox.h"
#include "core/sampling/sampler.h"

using namespace kvasir;  // NOLINT

namespace {

std::vector<std::pair<int32_t, float>> kept(SamplingParameters p, const std::vector<float>& logits,
                                            const std::vector<int32_t>& seen = {}) {
  auto result = Sampler(p, 0, static_cast<int64_t>(logits.size())).distribution(logits, seen);
  REQUIRE(result);
  return *result;
}

constexpr float kInf = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("given the paper's test vectors, when Philox runs, then its words are those") {
  // Random123's known answers for philox4x32, 10 rounds.
  CHECK(philox({0, 0, 0, 0}, {0, 0}) ==
        std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("given logits 3 2 1, when top-p 0.8 at temperature 0.5, then the order decides") {
  SamplingParameters p;
  p.temperature = 0.5F;
  p.top_p = 0.8F;
  const std::vector<float> logits = {3, 2, 1};
  const auto first = kept(p, logits);
  REQUIRE(first.size() == 1);
  CHECK(first[0].first == 0);
  p.order = SamplerOrder::top_p_first;
  const auto second = kept(p, logits);
  REQUIRE(second.size() == 2);
  CHECK(second[0].second == doctest::Approx(0.8807970779778823).epsilon(1e-6));
  CHECK(second[1].second == doctest::Approx(0.11920292202211755).epsilon(1e-6));
  for (const auto order : {SamplerOrder::temperature_first, SamplerOrder::top_p_first}) {
    p.order = order;
    auto sampled = Sampler(p, 0, 3).sample(logits, {}, 0, 3);
    REQUIRE(sampled);
    REQUIRE(sampled->top.size() == 3);
    for (size_t i = 0; i < 3; ++i) {
      CHECK(sampled->top[i].token == static_cast<int32_t>(i));
      CHECK(sampled->top[i].logprob == doctest::Approx(-0.40760596444438046 - double(i)).epsilon(1e-6));
    }
  }
}

TEST_CASE("given min-p 0.3, when cut, then two of four are left") {
  SamplingParameters p;
  p.temperature = 1;
  p.min_p = 0.3F;
  const auto left = kept(p, {0, -1, -2, -4});
  REQUIRE(left.size() == 2);
  // exp(0) and exp(-1), renormalised.
  CHECK(left[0].second == doctest::Approx(1 / (1 + std::exp(-1.0))));
}

TEST_CASE("given a repetition penalty, when seen, then positive logits shrink and negative grow") {
  SamplingParameters p;
  p.temperature = 1;
  p.repetition_penalty = 1.25F;
  const auto left = kept(p, {2.0F, -1.0F}, {0, 1, 1});
  REQUIRE(left.size() == 2);
  // 2.0 -> 1.6, -1.0 -> -1.25, once however often it was seen.
  CHECK(left[0].second == doctest::Approx(1 / (1 + std::exp(-2.85))));
  p.repetition_penalty = 1;
  p.presence_penalty = 0.5F;
  p.frequency_penalty = 0.25F;
  const auto counted = kept(p, {1.0F, 1.0F, 1.0F}, {1, 2, 2, 2});
  // 1, 1 - 0.5 - 0.25, 1 - 0.5 - 0.75.
  const double sum = 1 + std::exp(-0.75) + std::exp(-1.25);
  CHECK(counted[0].second == doctest::Approx(1 / sum));
  CHECK(counted[1].second == doctest::Approx(std::exp(-0.75) / sum));
  CHECK(counted[2].second == doctest::Approx(std::exp(-1.25) / sum));
}

TEST_CASE("given temperature 0, when everything else is 0 too, then the lowest of equals is taken") {
  SamplingParameters p;
  p.top_p = 0;
  const std::vector<float> tie = {1, 1};
  auto sampled = Sampler(p, 0, 2).sample(tie, {}, 0);
  REQUIRE(sampled);
  CHECK(sampled->token == 0);
  p.temperature = 1;  // top-p 0 keeps the best one
  CHECK(kept(p, {1, 3, 2}).size() == 1);
  CHECK(kept(p, {1, 3, 2})[0].first == 1);
}

TEST_CASE("given top-k, when equal logits stand at the edge, then the lower ids stay") {
  SamplingParameters p;
  p.temperature = 1;
  p.top_k = 2;
  const auto left = kept(p, {1, 2, 2, 2});
  REQUIRE(left.size() == 2);
  CHECK(left[0].first == 1);
  CHECK(left[1].first == 2);
}

TEST_CASE("given rows that are not finite, when sampled, then it is an error") {
  for (const float temperature : {0.0F, 1.0F}) {
    SamplingParameters p;
    p.temperature = temperature;
    for (const std::vector<float>& row :
         {std::vector<float>{-kInf, -kInf}, {0.0F, std::nanf("")}, {kInf, 0.0F}}) {
      const auto sampled = Sampler(p, 0, 2).sample(row, {}, 0);
      REQUIRE_FALSE(sampled);
      CHECK(sampled.error().code == ErrorCode::non_finite);
    }
    const std::vector<float> one = {-kInf, 0.0F};
    CHECK(Sampler(p, 0, 2).sample(one, {}, 0)->token == 1);
  }
}

TEST_CASE("given 100,000 draws, when counted, then they follow the probabilities") {
  SamplingParameters p;
  p.temperature = 1;
  p.seed = 3;
  const std::vector<float> logits = {std::log(0.5F), std::log(0.3F), std::log(0.2F)};
  Sampler sampler(p, 0, 3);
  std::vector<double> counts(3);
  std::vector<int32_t> draws;
  for (uint64_t step = 0; step < 100000; ++step) {
    const auto token = sampler.sample(logits, {}, step)->token;
    counts[static_cast<size_t>(token)]++;
    draws.push_back(token);
  }
  const double expected[] = {50000, 30000, 20000};
  double chi = 0;
  for (size_t i = 0; i < 3; ++i) chi += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
  CHECK(chi < 13.8);
  // The same seed draws the same, in any order of steps; another sequence draws something else.
  Sampler again(p, 0, 3), other(p, 1, 3);
  size_t differ = 0;
  for (uint64_t step = 1000; step-- > 0;) {
    CHECK(again.sample(logits, {}, step)->token == draws[step]);
    differ += other.sample(logits, {}, step)->token != draws[step] ? 1 : 0;
  }
  CHECK(differ > 300);
}

TEST_CASE("given values out of range, when validated, then the field is named") {
  const auto message = [](auto change) {
    SamplingParameters p;
    change(p);
    const auto status = validate(p);
    REQUIRE_FALSE(status);
    return status.error().message;
  };
  CHECK(message([](auto& p) { p.temperature = -1; }).find("temperature") != std::string::npos);
  CHECK(message([](auto& p) { p.temperature = std::nanf(""); }).find("temperature") != std::string::npos);
  CHECK(message([](auto& p) { p.top_k = -1; }).find("top-k") != std::string::npos);
  CHECK(message([](auto& p) { p.top_p = 1.5F; }).find("top-p") != std::string::npos);
  CHECK(message([](auto& p) { p.min_p = -0.1F; }).find("min-p") != std::string::npos);
  CHECK(message([](auto& p) { p.repetition_penalty = 0; }).find("repetition") != std::string::npos);
}
