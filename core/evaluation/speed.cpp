#include "core/evaluation/speed.h"

#include <algorithm>
#include <random>

namespace kvasir {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<TokenId> random_tokens(int64_t n, int64_t n_vocab, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<TokenId> tokens(static_cast<size_t>(n));
  for (auto& t : tokens) t = static_cast<TokenId>(random() % static_cast<uint64_t>(n_vocab));
  return tokens;
}

}  // namespace

SpeedMeter::SpeedMeter(Engine& engine)
    : engine_(engine), sampler_(SamplingParameters{}, 0, engine.model().n_vocab()) {}

Result<SpeedResult> SpeedMeter::measure(const SpeedCase& what, int repetitions,
                                        const std::function<void()>& progress,
                                        const CancelToken* cancel) {
  std::vector<SpeedResult> runs;
  for (int i = -1; i < repetitions; ++i) {
    if (auto s = fill(what, progress, cancel); !s) return std::move(s).error();
    SpeedResult run;
    run.what = what;
    const auto seed = static_cast<unsigned>(i + 2);
    auto status = what.mode == SpeedMode::prefill ? prefill(what, seed, run, cancel)
                                                  : decode(what, seed, run, cancel);
    if (!status) return std::move(status).error();
    if (i >= 0) runs.push_back(run);
    if (progress) progress();
  }
  std::sort(runs.begin(), runs.end(),
            [](const SpeedResult& a, const SpeedResult& b) { return a.time < b.time; });
  return runs[runs.size() / 2];
}

/// Every sequence of the case holds exactly its first `depth` random tokens afterwards.
Status SpeedMeter::fill(const SpeedCase& what, const std::function<void()>& progress,
                        const CancelToken* cancel) {
  const auto batch = static_cast<size_t>(what.batch);
  const int64_t chunk = engine_.options().prefill_chunk;
  // Sequences of no use now would need memory that the engine has promised to these.
  if (sequences_.size() > batch) sequences_.resize(batch);
  for (size_t i = 0; i < batch; ++i) {
    if (i == sequences_.size()) {
      auto made = engine_.new_sequence();
      if (!made) return std::move(made).error();
      sequences_.push_back(std::move(*made));
    }
    auto& sequence = *sequences_[i];
    // What a run appended goes; where a window has dropped too much for that, all is filled again.
    if (!sequence.rewind(std::min(sequence.length(), what.depth))) {
      if (auto s = sequence.rewind(0); !s) return s;
    }
    if (sequence.length() == what.depth) continue;
    const auto tokens =
        random_tokens(what.depth, engine_.model().n_vocab(), 1000000 + static_cast<unsigned>(i));
    while (sequence.length() < what.depth) {
      const auto first = static_cast<size_t>(sequence.length());
      const auto n = std::min(chunk, what.depth - sequence.length());
      const StepRequest request = {
          &sequence, std::span(tokens).subspan(first, static_cast<size_t>(n)), false, false};
      if (auto s = engine_.step({&request, 1}, cancel); !s) return s;
      if (progress) progress();
    }
  }
  return {};
}

Status SpeedMeter::timed_step(std::span<const StepRequest> requests, SpeedResult& result,
                              const CancelToken* cancel) {
  const auto start = Clock::now();
  if (auto s = engine_.step(requests, cancel); !s) return s;
  result.time += Clock::now() - start;
  result.forward.add(engine_.last_step());
  return {};
}

Status SpeedMeter::prefill(const SpeedCase& what, unsigned seed, SpeedResult& result,
                           const CancelToken* cancel) {
  std::vector<std::vector<TokenId>> tokens;
  for (int64_t i = 0; i < what.batch; ++i) {
    tokens.push_back(random_tokens(what.tokens, engine_.model().n_vocab(),
                                   seed + 1000 * static_cast<unsigned>(i)));
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    for (int64_t done = 0; done < what.tokens;) {
      const int64_t n = std::min(engine_.options().prefill_chunk, what.tokens - done);
      const StepRequest request = {
          sequences_[i].get(),
          std::span(tokens[i]).subspan(static_cast<size_t>(done), static_cast<size_t>(n)), false,
          done + n == what.tokens};
      if (auto s = timed_step({&request, 1}, result, cancel); !s) return s;
      done += n;
    }
  }
  return {};
}

Status SpeedMeter::decode(const SpeedCase& what, unsigned seed, SpeedResult& result,
                          const CancelToken* cancel) {
  const auto batch = static_cast<size_t>(what.batch);
  const auto tokens = random_tokens(what.tokens * what.batch, engine_.model().n_vocab(), seed);
  std::vector<StepRequest> requests(batch);
  for (size_t step = 0; step < static_cast<size_t>(what.tokens); ++step) {
    for (size_t i = 0; i < batch; ++i) {
      requests[i] = {sequences_[i].get(), std::span(tokens).subspan(step * batch + i, 1), false,
                     true};
    }
    if (auto s = timed_step(requests, result, cancel); !s) return s;
    if (auto s = sample(what.batch, result); !s) return s;
  }
  return {};
}

Status SpeedMeter::sample(int64_t n_rows, SpeedResult& result) {
  const auto n_vocab = static_cast<size_t>(engine_.model().n_vocab());
  const auto start = Clock::now();
  for (size_t row = 0; row < static_cast<size_t>(n_rows); ++row) {
    auto sampled = sampler_.sample(engine_.logits().subspan(row * n_vocab, n_vocab), {}, row);
    if (!sampled) return std::move(sampled).error();
  }
  result.sampling += Clock::now() - start;
  return {};
}

}  // namespace kvasir
