// Case T19 on a real model's file: smollm2-135m-instruct from the folder KVASIR_MODELS, or
// ~/.cache/kvasir/models. Where the file is missing these tests fail.
#include <pthread.h>

#include <chrono>
#include <cstdlib>

#include "tests/text/fixtures.h"

using namespace kvasir;

namespace {

std::string model_path() {
  const char* models = std::getenv("KVASIR_MODELS");
  const char* home = std::getenv("HOME");
  const std::string folder =
      models != nullptr ? models
                        : std::string(home != nullptr ? home : "") + "/.cache/kvasir/models";
  return folder + "/smollm2-135m-instruct.gguf";
}

const Tokenizer& tokenizer() {
  static const std::unique_ptr<Tokenizer> loaded = [] {
    auto file = gguf::File::open(model_path());
    REQUIRE_MESSAGE(file.ok(), "the model must be fetched first: ", file.error().message);
    auto result = Tokenizer::from_gguf((*file)->header);
    REQUIRE_MESSAGE(result.ok(), result.error().message);
    return std::move(*result);
  }();
  return *loaded;
}

std::string repeated(const std::string& text, size_t count) {
  std::string result;
  result.reserve(text.size() * count);
  for (size_t i = 0; i < count; ++i) result += text;
  return result;
}

std::vector<TokenId> ids(std::string_view text, SpecialTokens special) {
  auto result = tokenizer().encode(text, special);
  REQUIRE_MESSAGE(result.ok(), result.error().message);
  return std::move(*result);
}

/// Runs `work` on a thread with a stack of 256 KiB.
void run_on_small_stack(void* (*work)(void*), void* argument) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  REQUIRE(pthread_attr_setstacksize(&attributes, size_t{256} * 1024) == 0);
  pthread_t thread;
  REQUIRE(pthread_create(&thread, &attributes, work, argument) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

struct Encoding {
  std::string text;
  Result<std::vector<TokenId>> ids = std::vector<TokenId>();
};

void* encode(void* argument) {
  auto* encoding = static_cast<Encoding*>(argument);
  encoding->ids = tokenizer().encode(encoding->text, SpecialTokens::parse);
  return nullptr;
}

}  // namespace

TEST_CASE(
    "given 264 strings of many scripts, when encoded, then the ids are those of Hugging Face") {
  const auto fixture = test::read_fixture("smollm2.json");
  CHECK(fixture["cases"].size() >= 200);
  for (const auto& entry : fixture["cases"]) {
    const auto text = entry["text"].get<std::string>();
    CAPTURE(text);
    CHECK(ids(text, SpecialTokens::parse) == entry["ids"].get<std::vector<TokenId>>());
    const auto& right = entry.contains("ids_as_text") ? entry["ids_as_text"] : entry["ids"];
    const auto as_text = ids(text, SpecialTokens::as_text);
    CHECK(as_text == right.get<std::vector<TokenId>>());
    CHECK(tokenizer().decode(as_text) == text);
  }
}

TEST_CASE(
    "given 1 MiB of one character and a stack of 256 KiB, when encoded, then the ids are right in "
    "2 s") {
  const auto fixture = test::read_fixture("smollm2.json");
  CHECK(fixture["large"].size() == 5);
  CHECK(tokenizer().n_vocab() == 49152);  // load before the clock runs
  for (const auto& entry : fixture["large"]) {
    Encoding encoding;
    encoding.text = repeated(entry["text"].get<std::string>(), entry["count"].get<size_t>());
    const auto start = std::chrono::steady_clock::now();
    run_on_small_stack(encode, &encoding);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    REQUIRE_MESSAGE(encoding.ids.ok(), encoding.ids.error().message);
    const auto period = entry["period"].get<std::vector<TokenId>>();
    REQUIRE(encoding.ids->size() == entry["n_ids"].get<size_t>());
    size_t n_wrong = 0;
    for (size_t i = 0; i < encoding.ids->size(); ++i)
      n_wrong += (*encoding.ids)[i] != period[i % period.size()];
    CHECK(n_wrong == 0);
    CHECK(tokenizer().decode(*encoding.ids) == encoding.text);
    MESSAGE(entry["text"].dump(), " x ", encoding.text.size(), " bytes: ", seconds, " s");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    CHECK(seconds < 2.0);
#endif
  }
}

TEST_CASE(
    "given every single byte, when encoded, then it is its token or an error with its offset") {
  const auto byte_ids = test::read_fixture("smollm2.json")["byte_ids"];
  REQUIRE(byte_ids.size() == 256);
  int n_missing = 0;
  for (size_t byte = 0; byte < 256; ++byte) {
    CAPTURE(byte);
    const std::string text(1, static_cast<char>(byte));
    const auto result = tokenizer().encode(text, SpecialTokens::parse);
    if (byte_ids[byte].is_null()) {
      ++n_missing;
      REQUIRE_FALSE(result.ok());
      CHECK(result.error().message.find("at offset 0 ") != std::string::npos);
    } else {
      REQUIRE(result.ok());
      CHECK(*result == std::vector<TokenId>{byte_ids[byte].get<TokenId>()});
    }
  }
  CHECK(n_missing == 21);  // 04 06 13 14 16 1D C0 C1 F1 F2 F5..FF have no entry in this vocabulary
}

TEST_CASE("given the file's metadata, when read, then the ends of an answer are known") {
  // <|endoftext|> 0, <|im_start|> 1 (bos), <|im_end|> 2 (eos): the vocabulary's first entries.
  const auto ends = tokenizer().end_tokens();
  CHECK(std::vector<TokenId>(ends.begin(), ends.end()) == std::vector<TokenId>{0, 2});
  CHECK(tokenizer().bos() == 1);
  CHECK(tokenizer().eos() == 2);
  CHECK_FALSE(tokenizer().adds_bos());
  CHECK(tokenizer().token_text(2) == "<|im_end|>");
  CHECK(tokenizer().description() == "gpt2 / smollm");
}

TEST_CASE("given the file, when the tokenizer loads, then it takes little time") {
  const auto file = gguf::File::open(model_path());
  REQUIRE(file.ok());
  const auto start = std::chrono::steady_clock::now();
  CHECK(Tokenizer::from_gguf((*file)->header).ok());
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  MESSAGE("49,152 tokens and 48,900 merges in ", seconds * 1e3, " ms");
  CHECK(seconds < 2.0);  // 0.016 s measured; an unoptimised build and a busy machine pass too
}
