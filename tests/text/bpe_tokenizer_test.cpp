#include "core/text/bpe_tokenizer.h"

#include <array>
#include <thread>

#include "tests/text/fixtures.h"

using namespace kvasir;

namespace {

std::vector<TokenId> ids(const Tokenizer& tokenizer, std::string_view text,
                         SpecialTokens special = SpecialTokens::parse) {
  auto result = tokenizer.encode(text, special);
  REQUIRE_MESSAGE(result.ok(), result.error().message);
  return std::move(*result);
}

/// Takes 0x13 (which no merge makes) out of the vocabulary of single bytes.
void forget_byte_13(test::OwnedVocabulary& owned) {
  for (auto& token : owned.vocabulary.tokens) {
    if (token == "\u0113") token = "\u0113\u0113";
  }
}

}  // namespace

TEST_CASE("given texts and added tokens, when encoded, then the ids are those of Hugging Face") {
  const auto fixture = test::read_fixture("small_bpe.json");
  for (const auto& [name, cases] : fixture["cases"].items()) {
    auto owned = test::small_vocabulary(fixture, name.substr(0, name.find(' ')));
    owned.vocabulary.ignore_merges = name.ends_with(" ignore_merges");
    const auto tokenizer = test::tokenizer_of(owned);
    for (const auto& entry : cases) {
      const auto text = entry["text"].get<std::string>();
      CAPTURE(name);
      CAPTURE(text);
      CHECK(ids(*tokenizer, text) == entry["ids"].get<std::vector<TokenId>>());
      const auto as_text = ids(*tokenizer, text, SpecialTokens::as_text);
      CHECK(as_text == entry["ids_as_text"].get<std::vector<TokenId>>());
      CHECK(tokenizer->decode(as_text) == text);
    }
  }
}

TEST_CASE("given any bytes, when encoded and decoded, then they come back") {
  const auto fixture = test::read_fixture("small_bpe.json");
  std::mt19937 random(1);
  for (const char* pre : {"gpt-2", "smollm", "qwen2"}) {
    const auto tokenizer = test::tokenizer_of(test::small_vocabulary(fixture, pre));
    for (int byte = 0; byte < 256; ++byte) {
      const std::string text(1, static_cast<char>(byte));
      CHECK(tokenizer->decode(ids(*tokenizer, text)) == text);
      CHECK(ids(*tokenizer, text).size() == 1);
    }
    for (int round = 0; round < 2000; ++round) {
      std::string text;
      for (size_t n = random() % 40; n > 0; --n) {
        text +=
            random() % 2 == 0 ? static_cast<char>(random() % 256) : "run \n1[abc]"[random() % 11];
      }
      REQUIRE(tokenizer->decode(ids(*tokenizer, text, SpecialTokens::as_text)) == text);
    }
  }
}

TEST_CASE(
    "given a control token, when asked for its bytes, then there are none, but its text shows") {
  const auto fixture = test::read_fixture("small_bpe.json");
  const auto tokenizer = test::tokenizer_of(test::small_vocabulary(fixture, "gpt-2"));
  const auto control = ids(*tokenizer, "<|end|>");
  REQUIRE(control.size() == 1);
  CHECK(tokenizer->token_kind(control[0]) == TokenKind::control);
  CHECK(tokenizer->token_bytes(control[0]).empty());
  CHECK(tokenizer->token_text(control[0]) == "<|end|>");
  const auto added = ids(*tokenizer, "[abc]");
  REQUIRE(added.size() == 1);
  CHECK(tokenizer->token_kind(added[0]) == TokenKind::user_defined);
  CHECK(tokenizer->token_bytes(added[0]) == "[abc]");
}

TEST_CASE(
    "given a vocabulary without a byte, when a text has it, then the error names byte and offset") {
  auto owned = test::small_vocabulary(test::read_fixture("small_bpe.json"), "smollm");
  forget_byte_13(owned);
  const auto tokenizer = test::tokenizer_of(owned);
  for (const std::string& text :
       {std::string("run <|end|> 1\x13."), std::string("run \xC3|end| 1\x13")}) {
    const auto result = tokenizer->encode(text, SpecialTokens::parse);
    REQUIRE_FALSE(result.ok());
    CHECK(result.error().code == ErrorCode::invalid_argument);
    const std::string where = "0x13 at offset " + std::to_string(text.find('\x13')) + " ";
    CHECK_MESSAGE(result.error().message.find(where) != std::string::npos, result.error().message);
  }
}

TEST_CASE("given a byte token, when no entry spells the byte, then it stands for it") {
  auto owned = test::small_vocabulary(test::read_fixture("small_bpe.json"), "smollm");
  forget_byte_13(owned);
  owned.vocabulary.tokens.emplace_back("<0x13>");
  owned.vocabulary.kinds.push_back(TokenKind::byte);
  const auto tokenizer = test::tokenizer_of(owned);
  const auto last = static_cast<TokenId>(owned.vocabulary.tokens.size() - 1);
  CHECK(ids(*tokenizer, "\x13") == std::vector<TokenId>{last});
  CHECK(tokenizer->token_bytes(last) == "\x13");
}

TEST_CASE("given empty entries, when a vocabulary has several, then they are never made") {
  auto owned = test::small_vocabulary(test::read_fixture("small_bpe.json"), "gpt-2");
  for (int i = 0; i < 2; ++i) {
    owned.vocabulary.tokens.emplace_back("");
    owned.vocabulary.kinds.push_back(i == 0 ? TokenKind::normal : TokenKind::user_defined);
  }
  const auto tokenizer = test::tokenizer_of(owned);
  CHECK(tokenizer->decode(ids(*tokenizer, "running")) == "running");
}

TEST_CASE(
    "given four threads and one tokenizer, when they encode at once, then the ids are the same") {
  const auto tokenizer =
      test::tokenizer_of(test::small_vocabulary(test::read_fixture("small_bpe.json"), "smollm"));
  const std::string text = "running <|end|> 12 [abc] \xC3 don't\n\n\u6F22";
  const auto right = ids(*tokenizer, text);
  std::array<int, 4> n_equal{};
  {
    std::vector<std::jthread> threads;
    for (auto& count : n_equal) {
      threads.emplace_back([&] {
        for (int i = 0; i < 500; ++i) {
          const auto result = tokenizer->encode(text, SpecialTokens::parse);
          count += result.ok() && *result == right;
        }
      });
    }
  }
  for (const int count : n_equal) CHECK(count == 500);
}
