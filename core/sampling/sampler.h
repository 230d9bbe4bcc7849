// From logits to a token.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kvasir/result.h"

namespace kvasir {

/// Which of temperature and top-p comes first. Hugging Face scales by temperature before it looks
/// at probabilities; some programs cut first.
enum class SamplerOrder : uint8_t { temperature_first, top_p_first };

/// Steps: penalties, temperature, top-k, top-p, min-p, draw (Hugging Face's order).
/// A value at its default switches its step off (temperature 0: greedy, ties to the lowest id).
struct SamplingParameters {
  float temperature = 0.0F;  ///< >= 0
  int32_t top_k = 0;         ///< keep the k most likely; 0: all
  float top_p = 1.0F;        ///< keep the smallest set with at least this probability; 0: the best
  float min_p = 0.0F;        ///< drop what is below min_p times the best probability
  float repetition_penalty = 1.0F;  ///< > 0; divides positive, multiplies negative seen logits
  float presence_penalty = 0.0F;    ///< subtracted once from every seen token
  float frequency_penalty = 0.0F;   ///< subtracted for each time a token was seen
  uint64_t seed = 0;
  SamplerOrder order = SamplerOrder::temperature_first;
};

/// invalid_argument naming the field and its allowed range.
Status validate(const SamplingParameters& parameters);

struct TokenProbability {
  int32_t token = 0;
  float logprob = 0;  ///< natural log of the raw softmax, before any step of the chain
};

struct SampledToken {
  int32_t token = 0;
  float logprob = 0;                  ///< as in TokenProbability; 0 when n_logprobs is 0
  std::vector<TokenProbability> top;  ///< the n_logprobs most likely, descending, then by token
};

/// Draws are a function of (seed, sequence, step) alone: no state moves between draws, so what
/// other sequences do cannot change them (counter-based generator: Philox 4x32-10, Salmon et al.
/// 2011). Not thread-safe as an object (it owns scratch memory); one per sequence.
class Sampler {
 public:
  Sampler(SamplingParameters parameters, uint64_t sequence, int64_t n_vocab);

  /// `logits` [n_vocab] are not changed. `seen` are all tokens the penalties look at (prompt and
  /// answer). `step` counts the tokens drawn before in this sequence. A NaN, a +inf, or no finite
  /// logit at all is non_finite.
  Result<SampledToken> sample(std::span<const float> logits, std::span<const int32_t> seen,
                              uint64_t step, int32_t n_logprobs = 0);

  /// The tokens that are left after the chain and their probabilities, descending: what `sample`
  /// draws from. For tests and for people who want to see it.
  Result<std::vector<std::pair<int32_t, float>>> distribution(std::span<const float> logits,
                                                              std::span<const int32_t> seen);

  const SamplingParameters& parameters() const { return parameters_; }

 private:
  Status prepare(std::span<const float> logits, std::span<const int32_t> seen);
  void penalise(std::span<const int32_t> seen);
  void cut();
  void cut_top_p();

  /// A token that is still in the race.
  struct Candidate {
    float logit;
    int32_t token;
    double weight;  ///< exp(logit - best logit), after temperature
  };

  SamplingParameters parameters_;
  uint64_t sequence_;
  std::vector<float> adjusted_;         // [n_vocab]
  std::vector<Candidate> candidates_;   // descending; equal logits by ascending token
  std::vector<int32_t> counts_;         // [n_vocab], all 0 between calls
};

}  // namespace kvasir
