#include "core/evaluation/speed.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "models/load.h"
#include "tests/support/tiny_llama.h"

using namespace kvasir;  // NOLINT

namespace {

struct Tiny {
  explicit Tiny(EngineOptions options) {
    test::TinyLlama tiny;
    tiny.make();
    const auto path = std::filesystem::temp_directory_path() /
                      ("kvasir-speed-" + std::to_string(getpid()) + ".gguf");
    tiny.file().write(path.string());
    auto result = load_model(path.string());
    std::filesystem::remove(path);
    REQUIRE_MESSAGE(result, (result ? "" : result.error().message));
    loaded = std::move(*result);
    auto made = Engine::create(loaded->model, options);
    REQUIRE_MESSAGE(made, (made ? "" : made.error().message));
    engine = std::move(*made);
  }
  std::unique_ptr<LoadedModel> loaded;
  std::unique_ptr<Engine> engine;
};

}  // namespace

TEST_CASE("given cases one after another, when measured, then each counts its own tokens alone") {
  const Tiny tiny({.context_tokens = 120,
                   .prefill_chunk = 16,
                   .threads = 2,
                   .max_sequences = 4,
                   .max_logit_rows = 4});
  SpeedMeter meter(*tiny.engine);
  // Deeper, shallower, more and fewer sequences: what was filled before must not show.
  const SpeedCase cases[] = {{SpeedMode::prefill, 40, 0, 1},
                             {SpeedMode::decode, 5, 64, 4},
                             {SpeedMode::decode, 5, 0, 2},
                             {SpeedMode::prefill, 40, 80, 1},
                             {SpeedMode::decode, 7, 80, 3}};
  for (const auto& what : cases) {
    const auto result = meter.measure(what, 2);
    REQUIRE_MESSAGE(result, (result ? "" : result.error().message));
    const auto& forward = result->forward;
    CHECK(forward.rows == what.tokens * what.batch);
    CHECK(forward.steps == (what.mode == SpeedMode::prefill ? 3 : what.tokens));
    // Every token of a position p reads p + 1 keys and values: 2 layers x 4 heads x 16 x 2.
    int64_t keys = 0;
    for (int64_t t = 0; t < what.tokens; ++t) keys += what.depth + t + 1;
    CHECK(forward.attention_multiply_adds == what.batch * keys * 2 * 4 * 16 * 2);
    CHECK(result->time.count() > 0);
    CHECK((result->sampling.count() > 0) == (what.mode == SpeedMode::decode));
    CHECK(result->tokens_per_s() ==
          doctest::Approx(static_cast<double>(forward.rows) / result->seconds()));
  }
}

TEST_CASE("given a step, when its zones are added up, then they are no more than its time") {
  const Tiny tiny({.context_tokens = 120, .threads = 3});
  SpeedMeter meter(*tiny.engine);
  const auto result = meter.measure({SpeedMode::prefill, 100, 0, 1}, 1);
  REQUIRE(result);
  std::chrono::nanoseconds zones{0}, products{0};
  for (const auto time : result->forward.zone_time) zones += time;
  for (const auto time : result->forward.matmul_time) products += time;
  CHECK(zones <= result->forward.time);
  CHECK(result->forward.time <= result->time);
  const auto matmul = result->forward.zone_time[static_cast<size_t>(Zone::matmul)];
  CHECK(matmul.count() > 0);
  CHECK(products == matmul);
}

TEST_CASE("given a cancelled token, when measured, then it ends with that error") {
  const Tiny tiny({.context_tokens = 120});
  SpeedMeter meter(*tiny.engine);
  CancelToken cancel;
  cancel.request();
  const auto result = meter.measure({SpeedMode::decode, 10, 50, 1}, 3, {}, &cancel);
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::cancelled);
}
