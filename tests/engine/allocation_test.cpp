// Decoding allocates nothing once every buffer has had its largest size.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "core/engine/session.h"
#include "core/sampling/sampler.h"
#include "models/load.h"
#include "tests/support/count_allocations.h"
#include "tests/support/tiny_llama.h"

using namespace kvasir;  // NOLINT

namespace {

std::shared_ptr<Engine> make_engine(EngineOptions options) {
  test::TinyLlama tiny;
  tiny.make();
  const auto path = std::filesystem::temp_directory_path() /
                    ("kvasir-allocation-" + std::to_string(getpid()) + ".gguf");
  tiny.file().write(path.string());
  auto loaded = load_model(path.string());
  std::filesystem::remove(path);
  REQUIRE_MESSAGE(loaded, (loaded ? "" : loaded.error().message));
  auto engine = Engine::create((*loaded)->model, options);
  REQUIRE_MESSAGE(engine, (engine ? "" : engine.error().message));
  return std::move(*engine);
}

/// 100 tokens, each sampled from the logits before: across several blocks of 32 positions.
bool decode(Session& session, Sampler& sampler) {
  bool good = true;
  for (uint64_t step = 0; step < 100; ++step) {
    auto token = sampler.sample(session.logits(), session.tokens(), step);
    good = good && token && session.append(token->token).ok();
  }
  return good;
}

}  // namespace

TEST_CASE("given that counting works, when something is allocated, then it is counted") {
  const int64_t before = test::allocations.load();
  const auto one = std::make_unique<std::vector<int>>(100);
  const auto buffer = AlignedBuffer::allocate(1000);
  CHECK(one->size() == 100);
  CHECK(buffer.ok());
  CHECK(test::allocations.load() - before >= (test::kCountsAligned ? 3 : 2));
}

TEST_CASE(
    "given an answer that was decoded before, when decoded again, then nothing is allocated") {
  for (const int threads : {1, 3}) {
    for (const auto kv_type : {kv::KvType::f32, kv::KvType::f16}) {
      const auto engine = make_engine({.threads = threads, .kv_type = kv_type});
      auto session = Session::create(engine);
      REQUIRE(session);
      SamplingParameters parameters;
      parameters.temperature = 0.8F;
      parameters.top_k = 40;
      parameters.top_p = 0.9F;
      parameters.repetition_penalty = 1.1F;
      Sampler sampler(parameters, 0, engine->model().n_vocab());
      const std::vector<TokenId> prompt(50, 65);
      REQUIRE((*session)->evaluate(prompt));
      REQUIRE(decode(**session, sampler));  // warms up; its blocks go back to the pool
      REQUIRE((*session)->evaluate(prompt));
      const int64_t before = test::allocations.load();
      const bool good = decode(**session, sampler);
      const int64_t allocated = test::allocations.load() - before;
      CHECK(good);
      CHECK(allocated == 0);
    }
  }
}

TEST_CASE("given a batch that was decoded before, when decoded again, then nothing is allocated") {
  constexpr size_t kSequences = 5;
  const auto engine = make_engine({.context_tokens = 200,
                                   .threads = 2,
                                   .max_sequences = kSequences,
                                   .max_logit_rows = kSequences});
  std::vector<std::unique_ptr<kv::Sequence>> sequences;
  std::vector<StepRequest> requests;
  const std::vector<TokenId> tokens = {1, 2, 3, 4, 5};
  for (size_t i = 0; i < kSequences; ++i) {
    auto made = engine->new_sequence();
    REQUIRE(made);
    sequences.push_back(std::move(*made));
    requests.push_back({sequences[i].get(), std::span(tokens).subspan(i, 1), false, true});
  }
  int64_t allocated = -1;
  bool good = true;
  for (int round = 0; round < 2; ++round) {
    for (auto& sequence : sequences) good = good && sequence->rewind(0).ok();
    const int64_t before = test::allocations.load();
    for (int step = 0; step < 100; ++step) good = good && engine->step(requests).ok();
    allocated = test::allocations.load() - before;
  }
  CHECK(good);
  CHECK(allocated == 0);
}
