#include "core/text/pre_tokenizer.h"

#include "core/base/error.h"
#include "tests/text/fixtures.h"

using namespace kvasir;

namespace {

std::vector<std::string> pieces(const std::string& name, const std::string& text) {
  auto pre_tokenizer = PreTokenizer::named(name);
  REQUIRE(pre_tokenizer.ok());
  std::vector<std::string> result;
  const auto status = (*pre_tokenizer)->split(text, [&](std::string_view piece) {
    result.emplace_back(piece);
    return Status();
  });
  REQUIRE(status.ok());
  return result;
}

}  // namespace

TEST_CASE("given texts of many scripts, when cut, then the pieces are those of Hugging Face") {
  const auto fixture = test::read_fixture("small_bpe.json");
  for (const char* name : {"gpt-2", "smollm", "qwen2"}) {
    CHECK(fixture["cases"][name].size() >= 60);
    for (const auto& entry : fixture["cases"][name]) {
      const auto text = entry["text"].get<std::string>();
      CAPTURE(name);
      CAPTURE(text);
      CHECK(pieces(name, text) == entry["pieces"].get<std::vector<std::string>>());
    }
  }
}

TEST_CASE("given U+180E, when cut, then it is no white space, as in Unicode since 6.3") {
  CHECK(pieces("gpt-2", "a \u180E b") == std::vector<std::string>{"a", " \u180E", " b"});
}

TEST_CASE("given bytes that are no UTF-8, when cut, then they are pieces of their own") {
  CHECK(pieces("gpt-2", "ab\xFF\xFE cd") == std::vector<std::string>{"ab", "\xFF\xFE", " cd"});
  CHECK(pieces("gpt-2", "\xE2\x82") == std::vector<std::string>{"\xE2\x82"});
  CHECK(pieces("smollm", "1\xC3 2") == std::vector<std::string>{"1", "\xC3", " ", "2"});
  CHECK(pieces("gpt-2", "\xED\xA0\x80x") == std::vector<std::string>{"\xED\xA0\x80", "x"});
}

TEST_CASE(
    "given a name that is not known, when asked for, then the error names it and the known ones") {
  const auto pre_tokenizer = PreTokenizer::named("wobble");
  REQUIRE_FALSE(pre_tokenizer.ok());
  CHECK(pre_tokenizer.error().code == ErrorCode::unsupported);
  for (const char* part : {"'wobble'", "tokenizer.ggml.pre", "gpt-2", "smollm"})
    CHECK(pre_tokenizer.error().message.find(part) != std::string::npos);
  const auto missing = PreTokenizer::named("");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().message.find("'tokenizer.ggml.pre' is missing") != std::string::npos);
}

TEST_CASE("given a user of pieces that fails, when cut, then the cutting ends with its error") {
  auto pre_tokenizer = PreTokenizer::named("smollm");
  REQUIRE(pre_tokenizer.ok());
  int n_calls = 0;
  const auto status = (*pre_tokenizer)->split("a b c 1 2 3", [&](std::string_view piece) -> Status {
    ++n_calls;
    if (piece == " b") return make_error(ErrorCode::cancelled, "enough");
    return {};
  });
  CHECK_FALSE(status.ok());
  CHECK(status.error().message == "enough");
  CHECK(n_calls == 2);
}
