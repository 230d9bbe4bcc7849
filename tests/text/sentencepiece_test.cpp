#include <algorithm>

#include "core/base/error.h"
#include "core/text/sentencepiece_tokenizer.h"
#include "tests/text/fixtures.h"

using namespace kvasir;

namespace {

struct Entry {
  const char* text;
  float score;
  TokenKind kind = TokenKind::normal;
};

/// A hand-made vocabulary.
Vocabulary vocabulary_of(const std::vector<Entry>& entries, bool adds_space_prefix = false) {
  Vocabulary vocabulary;
  vocabulary.model = "llama";
  vocabulary.adds_space_prefix = adds_space_prefix;
  for (const auto& entry : entries) {
    vocabulary.tokens.emplace_back(entry.text);
    vocabulary.scores.push_back(entry.score);
    vocabulary.kinds.push_back(entry.kind);
  }
  return vocabulary;
}

/// ... with all bytes behind the entries.
Vocabulary with_bytes(Vocabulary vocabulary) {
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary.tokens.push_back(fmt::format("<0x{:02X}>", byte));
    vocabulary.scores.push_back(0);
    vocabulary.kinds.push_back(TokenKind::byte);
  }
  return vocabulary;
}

std::unique_ptr<SentencePieceTokenizer> make(Vocabulary vocabulary) {
  auto tokenizer = SentencePieceTokenizer::create(std::move(vocabulary));
  REQUIRE_MESSAGE(tokenizer.ok(), tokenizer.error().message);
  return std::move(*tokenizer);
}

std::vector<TokenId> encode(const Tokenizer& tokenizer, std::string_view text,
                            SpecialTokens special = SpecialTokens::as_text) {
  auto ids = tokenizer.encode(text, special);
  REQUIRE_MESSAGE(ids.ok(), ids.error().message);
  return std::move(*ids);
}

using Ids = std::vector<TokenId>;

bool names(const std::string& message, std::initializer_list<const char*> parts) {
  const bool all = std::all_of(parts.begin(), parts.end(), [&](const auto& part) {
    return message.find(part) != std::string::npos;
  });
  if (!all) MESSAGE(message);
  return all;
}

}  // namespace

TEST_CASE(
    "given small trained models, when encoded, then the ids are those of the sentencepiece "
    "library") {
  const auto fixture = test::read_fixture("small_sentencepiece.json");
  size_t n_compared = 0;
  for (const char* name : {"plain", "prefixed"}) {
    const auto& model = fixture[name];
    Vocabulary vocabulary;
    vocabulary.model = "llama";
    vocabulary.adds_space_prefix = name == std::string("prefixed");
    vocabulary.tokens = model["tokens"].get<std::vector<std::string>>();
    vocabulary.scores = model["scores"].get<std::vector<float>>();
    for (const int kind : model["kinds"]) vocabulary.kinds.push_back(static_cast<TokenKind>(kind));
    const auto tokenizer = make(vocabulary);
    for (const auto& entry : model["cases"]) {
      const auto text = entry[0].get<std::string>();
      CAPTURE(name);
      CAPTURE(text);
      CHECK(encode(*tokenizer, text) == entry[1].get<Ids>());
      n_compared++;
    }
  }
  CHECK(n_compared >= 200);
}

TEST_CASE("given scores, when merged, then the highest goes first and the leftmost among equals") {
  const auto tokenizer = make(vocabulary_of({{"a", -9},
                                             {"b", -9},
                                             {"c", -9},
                                             {"ab", -2},
                                             {"bc", -1},
                                             {"aa", -3},
                                             {"aaa", -4},
                                             {"abc", -5}}));
  CHECK(encode(*tokenizer, "abc") == Ids{7});  // bc first, then a + bc
  CHECK(encode(*tokenizer, "abb") == Ids{3, 1});
  CHECK(encode(*tokenizer, "aaaaa") == Ids{5, 6});  // aa aa a: the only neighbours left are aa + a
  CHECK(encode(*tokenizer, "aaab") == Ids{5, 3});   // ab scores higher than aa
  CHECK(encode(*tokenizer, "").empty());
}

TEST_CASE(
    "given a piece whose characters are no pieces, when merged, then it is found all the same") {
  const auto tokenizer = make(with_bytes(vocabulary_of({{"漢字", -1}, {"漢字漢", -2}})));
  CHECK(encode(*tokenizer, "漢字") == Ids{0});
  CHECK(encode(*tokenizer, "漢字漢") == Ids{1});
  CHECK(encode(*tokenizer, "漢") == Ids{2 + 0xE6, 2 + 0xBC, 2 + 0xA2});
}

TEST_CASE("given spaces, when encoded, then they are U+2581 and come back as spaces") {
  const auto tokenizer = make(with_bytes(vocabulary_of(
      {{"\u2581", -9}, {"a", -9}, {"\u2581a", -1}, {"   ", -1000, TokenKind::user_defined}})));
  CHECK(encode(*tokenizer, " a") == Ids{2});
  CHECK(encode(*tokenizer, "  a") == Ids{0, 2});
  CHECK(encode(*tokenizer, "   a") == Ids{3, 1});  // a run of three is user-defined
  CHECK(tokenizer->token_bytes(2) == " a");
  CHECK(tokenizer->token_bytes(3) == "   ");
  CHECK(tokenizer->token_text(2) == "\u2581a");
  CHECK(tokenizer->decode(encode(*tokenizer, "a    a")) == "a    a");
}

TEST_CASE(
    "given a file that asks for a space before the text, when encoded, then each run has one") {
  const auto tokenizer = make(with_bytes(vocabulary_of(
      {{"\u2581", -9}, {"a", -9}, {"\u2581a", -1}, {"<s>", 0, TokenKind::control}}, true)));
  CHECK(encode(*tokenizer, "a") == Ids{2});
  CHECK(encode(*tokenizer, "").empty());
  CHECK(encode(*tokenizer, "<s>a<s>", SpecialTokens::parse) == Ids{3, 2, 3});
  CHECK(encode(*tokenizer, "aa") == Ids{2, 1});
}

TEST_CASE(
    "given marked tokens, when encoded, then control tokens are found only where markup is read") {
  const auto tokenizer = make(with_bytes(vocabulary_of({{"<s>", 0, TokenKind::control},
                                                        {"<b>", 0, TokenKind::user_defined},
                                                        {"<pad>", 0, TokenKind::unused},
                                                        {"<", -1},
                                                        {"s>", -1},
                                                        {"s", -1},
                                                        {">", -1}})));
  CHECK(encode(*tokenizer, "<s><b>", SpecialTokens::parse) == Ids{0, 1});
  CHECK(encode(*tokenizer, "<s><b>") == Ids{3, 4, 1});
  CHECK(tokenizer->token_bytes(0).empty());
  CHECK(tokenizer->token_bytes(2).empty());
  const auto pad = encode(*tokenizer, "<pad>", SpecialTokens::parse);
  CHECK(std::find(pad.begin(), pad.end(), 2) == pad.end());
}

TEST_CASE("given any bytes, when encoded with byte tokens, then decoding gives them back") {
  const auto tokenizer = make(with_bytes(vocabulary_of(
      {{"é", -1}, {"\u2581", -2}, {"aé", -3}, {"a", -4}, {"\n", 0, TokenKind::user_defined}})));
  std::mt19937 random(3);
  const std::string parts[] = {"a",  "é",       " ", "\n", "\xC3", "\xA9", "\xFF", "\xED\xA0\x80",
                               "漢", "\xF0\x9F"};
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (unsigned n = random() % 12; n > 0; --n) text += parts[random() % std::size(parts)];
    REQUIRE(tokenizer->decode(encode(*tokenizer, text)) == text);
  }
}

TEST_CASE("given a byte that the vocabulary cannot spell, when encoded, then the error names it") {
  const auto plain = make(vocabulary_of({{"a", -1}, {"\u2581", -2}}));
  const auto fault = plain->encode("a  aéa", SpecialTokens::as_text);
  REQUIRE_FALSE(fault.ok());
  CHECK(fault.error().code == ErrorCode::invalid_argument);
  CHECK(names(fault.error().message, {"0xC3", "offset 4 "}));
  const auto no_space = make(vocabulary_of({{"a", -1}}, true))->encode("a", SpecialTokens::as_text);
  REQUIRE_FALSE(no_space.ok());
}

TEST_CASE(
    "given a mebibyte of one letter or of noise, when encoded, then it ends and loses nothing") {
  Vocabulary vocabulary = vocabulary_of({{"\u2581", -100}});
  for (size_t n = 1; n <= 64; ++n) {
    vocabulary.tokens.emplace_back(n, 'x');
    vocabulary.scores.push_back(-static_cast<float>(n));
    vocabulary.kinds.push_back(TokenKind::normal);
  }
  const auto tokenizer = make(with_bytes(vocabulary));
  std::mt19937 random(7);
  std::string noise(size_t{1} << 20, ' ');
  for (auto& c : noise) c = static_cast<char>(random());
  for (const auto& text :
       {std::string(size_t{1} << 20, 'x'), std::string(size_t{1} << 20, '\xE2'), noise}) {
    const bool same = tokenizer->decode(encode(*tokenizer, text)) == text;
    CHECK(same);
  }
}

TEST_CASE(
    "given vocabularies that make no sense, when read, then the error names key and entries") {
  auto vocabulary = vocabulary_of({{"a", 0}, {"b", 0}});
  vocabulary.scores.clear();
  auto fault = SentencePieceTokenizer::create(vocabulary);
  REQUIRE_FALSE(fault.ok());
  CHECK(names(fault.error().message, {"tokenizer.ggml.scores"}));
  fault = SentencePieceTokenizer::create(vocabulary_of({{"a", 0}, {"b", 0}, {"a", 0}}));
  REQUIRE_FALSE(fault.ok());
  CHECK(names(fault.error().message, {"tokenizer.ggml.tokens", "entries 0 and 2", "'a'"}));
}
