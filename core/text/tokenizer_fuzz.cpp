// libFuzzer entry of the tokenizers: any bytes as text, against vocabularies in memory. What must
// hold: decode(encode(x)) == x where control tokens are text, and no fault of memory or time.
#include <cstddef>
#include <cstdint>

#include "core/base/error.h"
#include "core/text/bpe_tokenizer.h"
#include "core/text/byte_level.h"
#include "core/text/sentencepiece_tokenizer.h"
#include "core/text/utf8.h"

namespace kvasir {
namespace {

constexpr std::string_view kMerges[] = {"\u0120 \u0120",
                                        "\u010A \u010A",
                                        "a b",
                                        "ab a",
                                        "b a",
                                        "ab ab",
                                        "\u0120 a",
                                        "\u0120\u0120 a",
                                        "1 2",
                                        "\u00C3 \u00A9",
                                        "\u00E6 \u00BC",
                                        "\u00E6\u00BC \u00A2",
                                        "' s"};

/// Every byte, the results of kMerges, and added tokens whose spellings overlap.
Vocabulary small_vocabulary(const char* pre, bool ignore_merges) {
  Vocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = pre;
  vocabulary.ignore_merges = ignore_merges;
  const auto add = [&](std::string text, TokenKind kind) {
    vocabulary.tokens.push_back(std::move(text));
    vocabulary.kinds.push_back(kind);
  };
  for (const auto& spelling : byte_spellings()) add(spelling, TokenKind::normal);
  for (const auto merge : kMerges) {
    std::string result(merge);
    result.erase(result.find(' '), 1);
    add(std::move(result), TokenKind::normal);
    vocabulary.merges.push_back(merge);
  }
  for (const char* text : {"<|a|>", "<|a|>b", "|a|", "<|aa|>"}) add(text, TokenKind::control);
  for (const char* text : {"[a", "[aab]", "aab]c", "\xFF\xFE"}) add(text, TokenKind::user_defined);
  return vocabulary;
}

/// Every byte, pieces whose merges overlap, and added tokens whose spellings overlap.
Vocabulary scored_vocabulary() {
  Vocabulary vocabulary;
  vocabulary.model = "llama";
  const auto add = [&](std::string text, TokenKind kind) {
    vocabulary.scores.push_back(-static_cast<float>(vocabulary.tokens.size() % 7));
    vocabulary.tokens.push_back(std::move(text));
    vocabulary.kinds.push_back(kind);
  };
  for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), TokenKind::byte);
  for (const char* text : {"\u2581", "a", "b", "ab", "ba", "aab", "aba", "\u2581a", "a\u2581", "\u2581a\u2581",
                           "\u00E9", "a\u00E9", "\u6F22\u5B57", "12", "21", "112"})
    add(text, TokenKind::normal);
  for (const char* text : {"<|a|>", "<|a|>b", "|a|", "<|a a|>"}) add(text, TokenKind::control);
  for (const char* text : {"[a", "[aab]", "aab]c", "   ", "\n", "\n\n"}) add(text, TokenKind::user_defined);
  return vocabulary;
}

const Tokenizer* tokenizer(size_t which) {
  static const std::array<std::unique_ptr<Tokenizer>, 4> all = [] {
    std::array<std::unique_ptr<Tokenizer>, 4> made;
    const struct {
      const char* pre;
      bool ignore_merges;
    } kinds[] = {{"gpt-2", false}, {"smollm", false}, {"gpt-2", true}};
    for (size_t i = 0; i < std::size(kinds); ++i) {
      auto result = BpeTokenizer::create(small_vocabulary(kinds[i].pre, kinds[i].ignore_merges));
      if (result) made[i] = std::move(*result);
    }
    auto scored = SentencePieceTokenizer::create(scored_vocabulary());
    if (scored) made[3] = std::move(*scored);
    return made;
  }();
  return all[which % all.size()].get();
}

/// What a person would see must be UTF-8 whatever the pieces, and equal for one push and many.
bool streams_well(const Tokenizer& t, const std::vector<TokenId>& ids, std::string_view text) {
  Utf8Assembler pieces;
  Utf8Assembler whole;
  std::string streamed;
  for (const TokenId id : ids) streamed += pieces.push(t.token_bytes(id));
  streamed += pieces.finish();
  std::string at_once = whole.push(text);
  at_once += whole.finish();
  return streamed == at_once && !find_invalid_utf8(streamed);
}

bool holds(std::string_view text) {
  // SentencePiece cannot tell U+2581 from a space (sentencepiece_tokenizer.h).
  const size_t n_tokenizers = text.find("\u2581") == std::string_view::npos ? 4 : 3;
  for (size_t which = 0; which < n_tokenizers; ++which) {
    const Tokenizer* t = tokenizer(which);
    if (t == nullptr) return false;
    const auto ids = t->encode(text, SpecialTokens::as_text);
    if (!ids || t->decode(*ids) != text || !streams_well(*t, *ids, text)) return false;
    const auto parsed = t->encode(text, SpecialTokens::parse);
    if (!parsed) return false;
    std::string spelled;
    for (const TokenId id : *parsed) {
      const bool is_control = t->token_kind(id) == TokenKind::control;
      spelled += is_control ? t->token_text(id) : t->token_bytes(id);
    }
    if (spelled != text) return false;
  }
  return true;
}

}  // namespace
}  // namespace kvasir

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (!kvasir::holds(text)) __builtin_trap();
  return 0;
}
