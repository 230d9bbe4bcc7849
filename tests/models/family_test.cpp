// The families' switches: biases, norms, gates, windows, bases.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>

#include "core/engine/session.h"
#include "cpu_kernels/kernels.h"
#include "tests/models/tiny_engine.h"

using namespace kvasir;        // NOLINT
using namespace kvasir::test;  // NOLINT

namespace {

TinyLlama tiny_of(const std::string& architecture, unsigned seed = 1) {
  TinyLlama tiny;
  tiny.architecture = architecture;
  tiny.tied = architecture == "gemma3";
  tiny.n_layers = architecture == "gemma3" ? 6 : 2;
  tiny.rope_base = 1e6;
  tiny.seed = seed;
  tiny.make();
  return tiny;
}

/// Largest |logit - reference|, over the largest |reference| but at least 1.
double relative_error(const std::vector<std::vector<float>>& got,
                      const std::vector<std::vector<double>>& expected) {
  double worst = 0, largest = 1;
  for (size_t t = 0; t < expected.size(); ++t) {
    for (size_t i = 0; i < expected[t].size(); ++i) {
      worst = std::max(worst, std::abs(got[t][i] - expected[t][i]));
      largest = std::max(largest, std::abs(expected[t][i]));
    }
  }
  return worst / largest;
}

}  // namespace

TEST_CASE(
    "given tiny models of each family, when evaluated, then logits equal the formulas in double") {
  for (const char* architecture : {"llama", "qwen2", "gemma3"}) {
    for (const unsigned seed : {1U, 2U}) {
      auto tiny = tiny_of(architecture, seed);
      const ModelFile file(tiny.file());
      const auto tokens = random_tokens(75, tiny.n_vocab, seed);
      auto engine = make_engine(file.path, {.prefill_chunk = 32, .threads = 2});
      const double error = relative_error(all_logits(*engine, tokens, 32), tiny.forward(tokens));
      CAPTURE(architecture);
      // As in decoder_test: 7 sums of at most 96 terms a layer, rounding 6e-8, a factor 4 for
      // growth.
      CHECK(error < 4 * 7 * static_cast<double>(tiny.n_layers) * 9.8 * 6e-8);
    }
  }
}

TEST_CASE("given a switch that is not applied, when compared with the formulas, then it shows") {
  const auto tokens = random_tokens(30, 260, 4);
  const auto error_of = [&](const TinyLlama& written, const TinyLlama& meant) {
    const ModelFile file(written.file());
    auto engine = make_engine(file.path, {.prefill_chunk = 30, .threads = 1});
    return relative_error(all_logits(*engine, tokens, 30), meant.forward(tokens));
  };
  const auto gemma = tiny_of("gemma3");
  for (const char* name : {"attn_q_norm", "attn_k_norm", "post_attention_norm", "post_ffw_norm"}) {
    auto other = gemma;
    auto& weight = other.tensors.at("blk.2." + std::string(name) + ".weight");
    std::reverse(weight.begin(), weight.end());
    CAPTURE(name);
    CHECK(error_of(other, gemma) > 1e-3);
  }
  for (const int64_t window : {7, 9}) {
    auto other = gemma;
    other.window = window;
    CHECK(error_of(other, gemma) > 1e-3);
  }
  auto other = gemma;
  other.local_rope_base = 20000;
  CHECK(error_of(other, gemma) > 1e-4);
  const auto qwen = tiny_of("qwen2");
  for (const char* name : {"attn_q", "attn_k", "attn_v"}) {
    auto no_bias = qwen;
    for (auto& b : no_bias.tensors.at("blk.1." + std::string(name) + ".bias")) b = -b;
    CAPTURE(name);
    CHECK(error_of(no_bias, qwen) > 1e-3);
  }
}

TEST_CASE("given windows, when threads and chunks differ, then every bit is the same") {
  for (const int64_t window : {1, 8, 32, 33, 100}) {
    auto tiny = tiny_of("gemma3");
    tiny.window = window;
    const ModelFile file(tiny.file());
    const auto tokens = random_tokens(150, tiny.n_vocab, 3);
    auto reference_engine = make_engine(file.path, {.prefill_chunk = 150, .threads = 1});
    const auto reference = all_logits(*reference_engine, tokens, 150);
    for (const size_t chunk : {1, 3, 8, 31, 64}) {
      auto engine =
          make_engine(file.path, {.prefill_chunk = static_cast<int64_t>(chunk), .threads = 2});
      CAPTURE(window);
      CAPTURE(chunk);
      CHECK(all_logits(*engine, tokens, chunk) == reference);
    }
  }
}

TEST_CASE(
    "given a window that crosses partials of 1,024 keys, when chunks differ, then bits are equal") {
  auto tiny = tiny_of("gemma3");
  tiny.window = 40;
  const ModelFile file(tiny.file());
  const auto tokens = random_tokens(1090, tiny.n_vocab, 3);
  auto one = make_engine(file.path, {.prefill_chunk = 1090, .threads = 1});
  auto two = make_engine(file.path, {.prefill_chunk = 7, .threads = 3});
  CHECK(all_logits(*one, tokens, 1090) == all_logits(*two, tokens, 7));
}

TEST_CASE(
    "given every kernel table, when a family with norms and GELU is evaluated, then bits are "
    "equal") {
  auto tiny = tiny_of("gemma3");
  const ModelFile file(tiny.file());
  const auto tokens = random_tokens(60, tiny.n_vocab, 9);
  std::vector<std::vector<float>> reference;
  int count = 0;
  const auto* choices = kernels::kernel_choices(&count);
  for (int i = 0; i < count; ++i) {
    if (choices[i].table == nullptr || !choices[i].cpu_has_it) continue;
    setenv("KVASIR_ISA", choices[i].name, 1);
    auto engine = make_engine(file.path, {.prefill_chunk = 60, .threads = 2});
    CHECK(engine->model().kernels_name() == choices[i].name);
    const auto got = all_logits(*engine, tokens, 60);
    if (reference.empty()) reference = got;
    CAPTURE(choices[i].name);
    CHECK(got == reference);
  }
  unsetenv("KVASIR_ISA");
  CHECK_FALSE(reference.empty());
}

TEST_CASE(
    "given a session with windows, when rewound anywhere, then it equals a cold run and says what "
    "it did") {
  auto tiny = tiny_of("gemma3");
  tiny.window = 40;
  const ModelFile file(tiny.file());
  auto engine = make_engine(file.path, {.prefill_chunk = 16, .threads = 2, .max_sequences = 2});
  auto session = Session::create(engine);
  REQUIRE(session);
  const auto first = random_tokens(150, tiny.n_vocab, 5);
  REQUIRE((*session)->evaluate(first));
  // 150 positions and a window of 40: the blocks from position 96 on are held, so that a query at
  // 135 (sees 96) and later ones go on, earlier ones begin anew.
  for (const size_t keep : {149U, 136U, 135U, 134U, 97U, 39U, 1U, 0U}) {
    auto tokens = std::vector<int32_t>(first.begin(), first.begin() + static_cast<long>(keep));
    const auto more = random_tokens(20, tiny.n_vocab, static_cast<unsigned>(keep) + 100);
    tokens.insert(tokens.end(), more.begin(), more.end());
    (*session)->reset_statistics();
    REQUIRE((*session)->evaluate(tokens));
    const auto& statistics = (*session)->statistics();
    const auto kept = static_cast<int64_t>(keep);
    CAPTURE(keep);
    CHECK(statistics.tokens_cached == (keep >= 135 ? kept : 0));
    CHECK(statistics.tokens_reevaluated == (keep >= 135 ? 0 : kept));
    CHECK(statistics.tokens_evaluated ==
          static_cast<int64_t>(tokens.size()) - statistics.tokens_cached);
    auto cold = Session::create(engine);
    REQUIRE(cold);
    REQUIRE((*cold)->evaluate(tokens));
    CHECK((*session)->logits_hash() == (*cold)->logits_hash());
    REQUIRE((*session)->evaluate(first));
  }
}

TEST_CASE("given windows, when a long text is evaluated, then their blocks stay within the plan") {
  auto tiny = tiny_of("gemma3");
  tiny.window = 40;
  const ModelFile file(tiny.file());
  auto engine = make_engine(file.path, {.context_tokens = 1500, .prefill_chunk = 50, .threads = 2});
  const auto& plan = engine->memory_plan();
  // Blocks of 32 positions, 2 KV heads, keys and values of 16 floats: 5 window layers in a ring of
  // ceil((40 - 1 + 50) / 32) + 2 = 5 blocks, one full layer in ceil(1500 / 32) = 47.
  constexpr size_t kLayerBlock = 32 * 2 * 2 * 16 * 4;
  CHECK(plan.kv_bytes == (5 * 5 + 1 * 47) * kLayerBlock);
  all_logits(*engine, random_tokens(1500, tiny.n_vocab, 1), 50);
  size_t held = 0;
  for (const auto& pool : engine->pools().pools) held += pool->statistics().bytes_allocated;
  CHECK(held <= plan.kv_bytes);
}

TEST_CASE("given keys a family does not know, when loaded, then the error names them") {
  const auto error_of = [](const char* architecture, auto&& change) {
    auto writer = tiny_of(architecture).file();
    change(writer);
    return load_error(writer);
  };
  using W = GgufWriter;
  CHECK(contains(error_of("gemma3", [](W& w) { w.f32("gemma3.final_logit_softcapping", 30); }),
                 "gemma3.final_logit_softcapping"));
  CHECK(contains(
      error_of("gemma3", [](W& w) { w.u32("gemma3.attention.sliding_window_pattern", 0); }),
      "gemma3.attention.sliding_window_pattern"));
  CHECK(contains(error_of("gemma3", [](W& w) { w.remove_tensor("blk.3.post_ffw_norm.weight"); }),
                 "blk.3.post_ffw_norm.weight"));
  CHECK(contains(error_of("qwen2", [](W& w) { w.u32("qwen2.attention.sliding_window", 4096); }),
                 "qwen2.attention.sliding_window"));
  CHECK(contains(error_of("qwen2", [](W& w) { w.text("qwen2.rope.scaling.type", "yarn"); }),
                 "qwen2.rope.scaling.type"));
  CHECK(contains(error_of("qwen2", [](W& w) { w.remove_tensor("blk.1.attn_k.bias"); }),
                 "blk.1.attn_k.bias"));
  const auto wrong_size = [](W& w) {
    w.remove_tensor("blk.0.attn_v.bias");
    w.tensor("blk.0.attn_v.bias", {31}, std::vector<float>(31));
  };
  CHECK(contains(error_of("qwen2", wrong_size), "blk.0.attn_v.bias"));
  const auto bias_in_llama = [](W& w) {
    w.tensor("blk.0.attn_v.bias", {32}, std::vector<float>(32));
  };
  CHECK(contains(error_of("llama", bias_in_llama), "blk.0.attn_v.bias"));
}
