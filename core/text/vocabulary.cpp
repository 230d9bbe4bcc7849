#include "core/text/vocabulary.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"

namespace kvasir {
namespace {

constexpr const char* kTokens = "tokenizer.ggml.tokens";
constexpr const char* kScores = "tokenizer.ggml.scores";
constexpr const char* kTypes = "tokenizer.ggml.token_type";

/// Control tokens that end an answer wherever they exist: chat models are trained to stop with
/// them, and not every file names them by a key.
constexpr std::array<std::string_view, 8> kEndTexts = {
    "<|im_end|>", "<|endoftext|>", "<|eot_id|>",     "<|end_of_text|>",
    "<|end|>",    "<end_of_turn>", "<|end_of_turn|>", "</s>"};

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/// "<0x7F>": exactly two hexadecimal digits.
bool is_byte_token(std::string_view text) {
  return text.size() == 6 && text.starts_with("<0x") && text.ends_with(">") &&
         hex_digit(text[3]) >= 0 && hex_digit(text[4]) >= 0;
}

Status read_kinds(const gguf::Header& header, Vocabulary& vocabulary) {
  const size_t n = vocabulary.tokens.size();
  vocabulary.kinds.assign(n, TokenKind::normal);
  if (header.find(kTypes) == nullptr) return {};
  auto types = header.get_ints(kTypes);
  if (!types) return std::move(types).error();
  if (types->size() != n) {
    return make_error(ErrorCode::corrupt_file, "key '{}' has {} entries, but key '{}' has {}", kTypes,
                      types->size(), kTokens, n);
  }
  for (size_t i = 0; i < n; ++i) {
    const int32_t type = (*types)[i];
    if (type < 1 || type > 6) {
      return make_error(ErrorCode::corrupt_file, "entry {} of key '{}' is {}, but must be 1 to 6", i,
                        kTypes, type);
    }
    vocabulary.kinds[i] = static_cast<TokenKind>(type);
    if (vocabulary.kinds[i] == TokenKind::byte && !is_byte_token(vocabulary.tokens[i])) {
      return make_error(ErrorCode::corrupt_file,
                        "entry {} of key '{}' is a byte token, but is spelled '{}' instead of "
                        "'<0x00>' to '<0xFF>'",
                        i, kTokens, vocabulary.tokens[i]);
    }
  }
  return {};
}

Status read_scores(const gguf::Header& header, Vocabulary& vocabulary) {
  if (header.find(kScores) == nullptr) return {};
  auto scores = header.get_floats(kScores);
  if (!scores) return std::move(scores).error();
  if (scores->size() != vocabulary.tokens.size()) {
    return make_error(ErrorCode::corrupt_file, "key '{}' has {} entries, but key '{}' has {}",
                      kScores, scores->size(), kTokens, vocabulary.tokens.size());
  }
  for (size_t i = 0; i < scores->size(); ++i) {
    if (!std::isfinite((*scores)[i]))
      return make_error(ErrorCode::corrupt_file, "entry {} of key '{}' is not a finite number", i,
                        kScores);
  }
  vocabulary.scores = std::move(*scores);
  return {};
}

/// An id by its key; `fallback` < 0: none when the key is missing.
Result<std::optional<TokenId>> read_id(const gguf::Header& header, const std::string& key,
                                       TokenId fallback, size_t n_tokens) {
  const bool given = header.find(key) != nullptr;
  if (!given && fallback < 0) return std::optional<TokenId>();
  auto id = header.int_or(key, fallback);
  if (!id) return std::move(id).error();
  if (*id < 0 || static_cast<uint64_t>(*id) >= n_tokens) {
    return make_error(ErrorCode::corrupt_file, "key '{}' {} {}, but the vocabulary has only {} tokens",
                      key, given ? "is" : "is missing and its default is", *id, n_tokens);
  }
  return std::optional<TokenId>(static_cast<TokenId>(*id));
}

Status read_ids(const gguf::Header& header, Vocabulary& vocabulary) {
  // The SentencePiece kinds have ids by default, as the format says; byte-level ones have none.
  const bool sentencepiece = vocabulary.model == "llama";
  const struct {
    const char* name;
    TokenId fallback;
    bool ends;
    std::optional<TokenId>* keep;
  } ids[] = {
      {"bos", sentencepiece ? 1 : -1, false, &vocabulary.bos},
      {"eos", sentencepiece ? 2 : -1, true, &vocabulary.eos},
      {"unknown", sentencepiece ? 0 : -1, false, nullptr},
      {"eot", -1, true, nullptr},
      {"eom", -1, true, nullptr},
      {"seperator", -1, false, nullptr},  // as the format spells it
      {"padding", -1, false, nullptr},
      {"cls", -1, false, nullptr},
      {"mask", -1, false, nullptr},
      {"prefix", -1, false, nullptr},
      {"suffix", -1, false, nullptr},
      {"middle", -1, false, nullptr},
  };
  for (const auto& entry : ids) {
    auto id = read_id(header, fmt::format("tokenizer.ggml.{}_token_id", entry.name), entry.fallback,
                      vocabulary.tokens.size());
    if (!id) return std::move(id).error();
    if (entry.keep != nullptr) *entry.keep = *id;
    if (entry.ends && *id) vocabulary.end_tokens.push_back(**id);
  }
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    if (vocabulary.kinds[i] == TokenKind::control &&
        std::find(kEndTexts.begin(), kEndTexts.end(), vocabulary.tokens[i]) != kEndTexts.end())
      vocabulary.end_tokens.push_back(static_cast<TokenId>(i));
  }
  auto& ends = vocabulary.end_tokens;
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return {};
}

}  // namespace

Result<Vocabulary> Vocabulary::read(const gguf::Header& header) {
  Vocabulary vocabulary;
  auto model = header.get_string("tokenizer.ggml.model");
  if (!model) return std::move(model).error();
  vocabulary.model = std::string(*model);
  auto pre = header.string_or("tokenizer.ggml.pre", "");
  if (!pre) return std::move(pre).error();
  vocabulary.pre = std::string(*pre);
  auto tokens = header.get_strings(kTokens);
  if (!tokens) return std::move(tokens).error();
  if (tokens->empty()) return make_error(ErrorCode::corrupt_file, "key '{}' is empty", kTokens);
  if (tokens->size() > INT32_MAX)
    return make_error(ErrorCode::corrupt_file, "key '{}' has {} entries", kTokens, tokens->size());
  vocabulary.tokens.assign(tokens->begin(), tokens->end());

  if (auto s = read_kinds(header, vocabulary); !s) return std::move(s).error();
  if (auto s = read_scores(header, vocabulary); !s) return std::move(s).error();
  if (auto s = read_ids(header, vocabulary); !s) return std::move(s).error();
  auto adds_bos = header.bool_or("tokenizer.ggml.add_bos_token", vocabulary.model == "llama");
  if (!adds_bos) return std::move(adds_bos).error();
  vocabulary.adds_bos = *adds_bos && vocabulary.bos.has_value();
  if (header.find("tokenizer.ggml.merges") != nullptr) {
    auto merges = header.get_strings("tokenizer.ggml.merges");
    if (!merges) return std::move(merges).error();
    vocabulary.merges.assign(merges->begin(), merges->end());
  }
  return vocabulary;
}

}  // namespace kvasir
