#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>

#include "core/engine/session.h"
#include "cpu_kernels/kernels.h"
#include "models/fast_dense.h"
#include "tests/models/tiny_engine.h"

using namespace kvasir;  // NOLINT
using namespace kvasir::test;  // NOLINT

TEST_CASE("given a tiny random llama, when evaluated, then logits equal the formulas in double") {
  for (const bool tied : {false, true}) {
    for (const int64_t n_kv_heads : {1, 2, 4}) {
      TinyLlama tiny;
      tiny.tied = tied;
      tiny.n_kv_heads = n_kv_heads;
      tiny.seed = static_cast<unsigned>(n_kv_heads);
      tiny.make();
      const ModelFile file(tiny.file());
      const auto tokens = random_tokens(70, tiny.n_vocab, 7);
      auto engine = make_engine(file.path, {.prefill_chunk = 32, .threads = 2});
      const auto got = all_logits(*engine, tokens, 32);
      const auto expected = tiny.forward(tokens);
      double worst = 0, largest = 0;
      for (size_t t = 0; t < tokens.size(); ++t) {
        for (size_t i = 0; i < expected[t].size(); ++i) {
          worst = std::max(worst, std::abs(got[t][i] - expected[t][i]));
          largest = std::max(largest, std::abs(expected[t][i]));
        }
      }
      CAPTURE(worst);
      CAPTURE(largest);
      CHECK(largest > 0.5);  // the model says something
      // Two layers of sums of at most 96 terms, f32 rounding 2^-24 each: about
      // 2 * 7 sums * sqrt(96) * 6e-8 of the largest value, with a factor 4 for growth.
      CHECK(worst < 4 * 14 * 9.8 * 6e-8 * std::max(1.0, largest));
    }
  }
}

TEST_CASE("given one prompt, when threads and chunks differ, then every bit is the same") {
  TinyLlama tiny;
  tiny.make();
  const ModelFile file(tiny.file());
  const auto tokens = random_tokens(1100, tiny.n_vocab, 3);  // crosses a partial of 1,024 keys
  auto reference_engine = make_engine(file.path, {.prefill_chunk = 512, .threads = 1});
  const auto reference = all_logits(*reference_engine, tokens, 512);
  for (const int threads : {1, 2, 3, 4}) {
    for (const size_t chunk : {1, 7, 32, 33, 500}) {
      if (threads == 4 && chunk == 1) continue;  // slow on two cores, covered by 3
      auto engine = make_engine(file.path,
                                {.prefill_chunk = static_cast<int64_t>(chunk), .threads = threads});
      const auto got = all_logits(*engine, tokens, chunk);
      CAPTURE(threads);
      CAPTURE(chunk);
      CHECK(got == reference);
    }
  }
}

TEST_CASE("given sequences of several lengths, when batched, then each equals its run alone") {
  TinyLlama tiny;
  tiny.make();
  const ModelFile file(tiny.file());
  const std::vector<std::vector<int32_t>> prompts = {random_tokens(1, tiny.n_vocab, 1),
                                                     random_tokens(45, tiny.n_vocab, 2),
                                                     random_tokens(8, tiny.n_vocab, 3)};
  auto together = make_engine(file.path, {.prefill_chunk = 64, .threads = 2, .max_sequences = 3});
  std::vector<std::unique_ptr<kv::Sequence>> sequences;
  std::vector<StepRequest> requests;
  for (const auto& prompt : prompts) {
    sequences.push_back(std::move(*together->new_sequence()));
    requests.push_back({sequences.back().get(), prompt, true, false});
  }
  REQUIRE(together->step(requests));
  std::vector<float> got(together->logits().begin(), together->logits().end());
  std::vector<float> expected;
  for (const auto& prompt : prompts) {
    auto alone = make_engine(file.path, {.prefill_chunk = 64, .threads = 1});
    for (const auto& row : all_logits(*alone, prompt, 64))
      expected.insert(expected.end(), row.begin(), row.end());
  }
  CHECK(got == expected);
}

TEST_CASE("given every kernel table of this machine, when evaluated, then every bit is the same") {
  TinyLlama tiny;
  tiny.make();
  const ModelFile file(tiny.file());
  const auto tokens = random_tokens(100, tiny.n_vocab, 9);
  std::vector<std::vector<float>> reference;
  int count = 0;
  const auto* choices = kernels::kernel_choices(&count);
  int ran = 0;
  for (int i = 0; i < count; ++i) {
    if (choices[i].table == nullptr || !choices[i].cpu_has_it) continue;
    setenv("KVASIR_ISA", choices[i].name, 1);
    auto engine = make_engine(file.path, {.prefill_chunk = 64, .threads = 2});
    CHECK(engine->model().kernels_name() == choices[i].name);
    const auto got = all_logits(*engine, tokens, 64);
    if (reference.empty()) reference = got;
    CAPTURE(choices[i].name);
    CHECK(got == reference);
    ran++;
  }
  unsetenv("KVASIR_ISA");
  CHECK(ran >= 1);
  MESSAGE("kernel tables run: " << ran << " of " << count);
}

TEST_CASE("given a session, when it rewinds and goes on, then it equals a cold run") {
  TinyLlama tiny;
  tiny.make();
  const ModelFile file(tiny.file());
  auto engine = make_engine(file.path, {.prefill_chunk = 16, .threads = 2, .max_sequences = 2});
  auto session = Session::create(engine);
  REQUIRE(session);
  const auto first = random_tokens(90, tiny.n_vocab, 5);
  REQUIRE((*session)->evaluate(first));
  for (const size_t keep : {89U, 64U, 63U, 33U, 1U, 0U}) {
    auto tokens = std::vector<int32_t>(first.begin(), first.begin() + static_cast<long>(keep));
    const auto more = random_tokens(20, tiny.n_vocab, static_cast<unsigned>(keep) + 100);
    tokens.insert(tokens.end(), more.begin(), more.end());
    (*session)->reset_statistics();
    REQUIRE((*session)->evaluate(tokens));
    CHECK((*session)->statistics().tokens_cached + (*session)->statistics().tokens_evaluated ==
          static_cast<int64_t>(tokens.size()));
    auto cold = Session::create(engine);
    REQUIRE(cold);
    REQUIRE((*cold)->evaluate(tokens));
    CHECK((*cold)->statistics().tokens_evaluated == static_cast<int64_t>(tokens.size()));
    CHECK((*session)->logits_hash() == (*cold)->logits_hash());
    REQUIRE((*session)->evaluate(first));
  }
}

TEST_CASE("given a prompt already evaluated, when evaluated again, then one token is evaluated") {
  TinyLlama tiny;
  tiny.make();
  const ModelFile file(tiny.file());
  auto session = Session::create(make_engine(file.path, {.threads = 1}));
  REQUIRE(session);
  const auto tokens = random_tokens(50, tiny.n_vocab, 5);
  REQUIRE((*session)->evaluate(tokens));
  const auto hash = (*session)->logits_hash();
  (*session)->reset_statistics();
  REQUIRE((*session)->evaluate(tokens));
  CHECK((*session)->statistics().tokens_evaluated == 1);
  CHECK((*session)->statistics().tokens_cached == 49);
  CHECK((*session)->logits_hash() == hash);
}

TEST_CASE("given a context of 40, when 41 tokens come, then the error names both numbers") {
  TinyLlama tiny;
  tiny.make();
  const ModelFile file(tiny.file());
  auto session = Session::create(make_engine(file.path, {.context_tokens = 40, .threads = 1}));
  REQUIRE(session);
  const auto status = (*session)->evaluate(random_tokens(41, tiny.n_vocab, 5));
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ErrorCode::limit_exceeded);
  CHECK(contains(status.error().message, "41"));
  CHECK(contains(status.error().message, "40"));
  CHECK((*session)->evaluate(random_tokens(40, tiny.n_vocab, 5)));
  CHECK_FALSE((*session)->append(0));
}

TEST_CASE("given a token outside the vocabulary, when evaluated, then the error names it") {
  TinyLlama tiny;
  tiny.make();
  const ModelFile file(tiny.file());
  auto session = Session::create(make_engine(file.path, {.threads = 1}));
  REQUIRE(session);
  const std::vector<int32_t> tokens = {1, 2, 260};
  const auto status = (*session)->evaluate(tokens);
  REQUIRE_FALSE(status);
  CHECK(contains(status.error().message, "token 260 at position 2"));
  CHECK((*session)->tokens().empty());
}

TEST_CASE("given a cancelled evaluation, when it is asked again, then it equals a cold run") {
  TinyLlama tiny;
  tiny.make();
  const ModelFile file(tiny.file());
  auto engine = make_engine(file.path, {.prefill_chunk = 16, .threads = 2, .max_sequences = 2});
  auto session = Session::create(engine);
  REQUIRE(session);
  const auto tokens = random_tokens(100, tiny.n_vocab, 5);
  CancelToken cancel;
  const auto stop_at_48 = [&](int64_t done, int64_t) {
    if (done >= 48) cancel.request();
  };
  const auto status = (*session)->evaluate(tokens, stop_at_48, &cancel);
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ErrorCode::cancelled);
  CHECK((*session)->tokens().size() == 48);
  cancel.reset();
  REQUIRE((*session)->evaluate(tokens, {}, &cancel));
  auto cold = Session::create(engine);
  REQUIRE(cold);
  REQUIRE((*cold)->evaluate(tokens));
  CHECK((*session)->logits_hash() == (*cold)->logits_hash());
}

TEST_CASE("given faults in an otherwise valid model, when loaded, then the error names the place") {
  TinyLlama tiny;
  tiny.make();
  {
    auto w = tiny.file();
    w.remove_tensor("blk.1.ffn_up.weight");
    CHECK(contains(load_error(w), "blk.1.ffn_up.weight"));
  }
  {
    auto w = tiny.file();
    w.remove_tensor("blk.0.attn_k.weight");
    w.tensor("blk.0.attn_k.weight", {64, 31}, std::vector<float>(64 * 31));
    const auto message = load_error(w);
    CHECK(contains(message, "blk.0.attn_k.weight"));
    CHECK(contains(message, "31"));
  }
  {
    auto w = tiny.file();
    w.tensor("blk.0.surprise.weight", {64}, std::vector<float>(64));
    CHECK(contains(load_error(w), "blk.0.surprise.weight"));
  }
  {
    auto w = tiny.file();
    w.remove_tensor("blk.0.attn_v.weight");
    const std::vector<uint8_t> data(static_cast<size_t>(32 * 2 * 36));
    w.tensor("blk.0.attn_v.weight", {64, 32}, DType::q8_1, data.data(), data.size());
    const auto message = load_error(w);
    CHECK(contains(message, "blk.0.attn_v.weight"));
    CHECK(contains(message, "Q8_1"));
  }
  {
    auto w = tiny.file();
    auto values = tiny.tensors.at("blk.1.ffn_down.weight");
    values[777] = std::nanf("");
    w.remove_tensor("blk.1.ffn_down.weight");
    w.tensor("blk.1.ffn_down.weight", {96, 64}, values);
    CHECK(contains(load_error(w), "blk.1.ffn_down.weight"));
  }
  {
    auto w = tiny.file();
    w.text("llama.rope.scaling.type", "yarn");
    CHECK(contains(load_error(w), "llama.rope.scaling.type"));
  }
  {
    auto w = tiny.file();
    w.f32("llama.rope.scaling.wobble", 2);
    CHECK(contains(load_error(w), "llama.rope.scaling.wobble"));
  }
}

TEST_CASE("given an architecture nobody knows, when loaded, then the error names it") {
  test::GgufWriter w;
  w.text("general.architecture", "warp-drive");
  const auto message = load_error(w);
  CHECK(contains(message, "warp-drive"));
  CHECK(contains(message, "llama"));
}

TEST_CASE("given frequency factors and linear scaling, when evaluated, then angles follow them") {
  TinyLlama tiny;
  tiny.make();
  const auto tokens = random_tokens(40, tiny.n_vocab, 5);
  auto scaled = tiny.file();
  scaled.text("llama.rope.scaling.type", "linear");
  scaled.f32("llama.rope.scaling.factor", 4);
  const ModelFile scaled_file(scaled);
  auto scaled_engine = make_engine(scaled_file.path, {.threads = 1});
  const auto linear = all_logits(*scaled_engine, tokens, 40);
  // The same angles, spelled as factors that divide every frequency by 4.
  auto factors = tiny.file();
  factors.tensor("rope_freqs.weight", {8}, std::vector<float>(8, 4.0F));
  const ModelFile factors_file(factors);
  auto factors_engine = make_engine(factors_file.path, {.threads = 1});
  CHECK(all_logits(*factors_engine, tokens, 40) == linear);
  const ModelFile plain_file(tiny.file());
  auto plain_engine = make_engine(plain_file.path, {.threads = 1});
  CHECK(all_logits(*plain_engine, tokens, 40) != linear);
}

TEST_CASE("given fast math, when dense weights are multiplied by a library, then it is close") {
  TinyLlama tiny;
  tiny.hidden = 128;
  tiny.ff = 200;  // the last panel of gate and up is not full
  tiny.make();
  const ModelFile file(tiny.file());
  const auto tokens = random_tokens(64, tiny.n_vocab, 5);
  auto engine = make_engine(file.path, {.prefill_chunk = 64, .threads = 2, .math = MathMode::fast});
  const auto got = all_logits(*engine, tokens, 64);
  const auto expected = tiny.forward(tokens);
  double worst = 0, largest = 0;
  for (size_t t = 0; t < tokens.size(); ++t) {
    for (size_t i = 0; i < expected[t].size(); ++i) {
      worst = std::max(worst, std::abs(got[t][i] - expected[t][i]));
      largest = std::max(largest, std::abs(expected[t][i]));
    }
  }
  CHECK(worst < 4 * 14 * 14.2 * 6e-8 * std::max(1.0, largest));  // sums of up to 200 terms
  // What the statistics say was given away is what the choices say.
  bool any = false;
  for (const auto& line : engine->fast_math_choices()) {
    MESSAGE(line);
    any = any || line.find(": library") != std::string::npos;
  }
  CHECK((engine->last_step().library_matmul_calls > 0) == any);
}

TEST_CASE("given every dense shape, when the library is asked, then it computes the product") {
  const auto library = FastDense::create();
  if (library == nullptr) {
    MESSAGE("this build has no library for fast math");
    CHECK(FastDense::library().empty());
    return;
  }
  const int64_t rows = 48, columns = 100, batch = 20;
  std::vector<float> source(static_cast<size_t>(rows * columns));
  std::vector<float> x(static_cast<size_t>(batch * columns));
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i % 17) - 8;
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 5) - 2;
  const size_t panel = kernels::packed_panel_bytes(kernels::WeightFormat::f32, columns);
  auto memory = AlignedBuffer::allocate(3 * panel);
  REQUIRE(memory);
  for (int64_t p = 0; p < 3; ++p) {
    REQUIRE(kernels::pack_panel(kernels::WeightFormat::f32,
                                reinterpret_cast<const std::byte*>(source.data()),
                                static_cast<size_t>(columns) * 4, rows, columns, p,
                                memory->data() + static_cast<size_t>(p) * panel));
  }
  const kernels::PackedMatrix matrix = {kernels::WeightFormat::f32, rows, columns, memory->data(),
                                        panel};
  kernels::Activations input{};
  input.n_rows = batch;
  input.n_columns = columns;
  input.values = x.data();
  input.values_stride = columns;
  std::vector<float> y(static_cast<size_t>(batch * 50), 1.0F);
  for (const bool add : {false, true}) {
    std::fill(y.begin(), y.end(), 1.0F);
    REQUIRE(library->multiply({&matrix, &input, y.data(), 50, 1, 3, add, nullptr}));
    for (int64_t m = 0; m < batch; ++m) {
      for (int64_t n = 0; n < 50; ++n) {
        double sum = n >= 16 && n < 48 && !add ? 0 : 1;  // untouched, or added to
        for (int64_t k = 0; k < columns && n >= 16 && n < 48; ++k)
          sum += static_cast<double>(source[static_cast<size_t>(n * columns + k)]) *
                 x[static_cast<size_t>(m * columns + k)];
        REQUIRE(y[static_cast<size_t>(m * 50 + n)] == sum);  // small integers: exact
      }
    }
  }
}
