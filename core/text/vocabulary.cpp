#include "core/text/vocabulary.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/text/byte_level.h"

namespace kvasir {
namespace {

constexpr const char* kTokens = "tokenizer.ggml.tokens";
constexpr const char* kScores = "tokenizer.ggml.scores";
constexpr const char* kTypes = "tokenizer.ggml.token_type";

/// Control tokens that end an answer wherever they exist, as in llama.cpp: chat models are trained
/// to stop with them, and few files name them by a key (SmolLM2's names "<|im_end|>" only).
constexpr std::string_view kEndTexts[] = {
    "<|im_end|>",         "<|endoftext|>", "<|eot_id|>",    "<|eom_id|>",
    "<|end_of_text|>",    "<|end|>",       "<end_of_turn>", "<|end_of_turn|>",
    "<end_of_utterance>", "<EOT>",         "</s>"};

Status read_kinds(const gguf::Header& header, Vocabulary& vocabulary) {
  const size_t n = vocabulary.tokens.size();
  vocabulary.kinds.assign(n, TokenKind::normal);
  if (header.find(kTypes) == nullptr) return {};
  auto types = header.get_ints(kTypes);
  if (!types) return std::move(types).error();
  if (types->size() != n) {
    return make_error(ErrorCode::corrupt_file, "key '{}' has {} entries, but key '{}' has {}",
                      kTypes, types->size(), kTokens, n);
  }
  for (size_t i = 0; i < n; ++i) {
    const int32_t type = (*types)[i];
    if (type < 1 || type > 6) {
      return make_error(ErrorCode::corrupt_file, "entry {} of key '{}' is {}, but must be 1 to 6",
                        i, kTypes, type);
    }
    vocabulary.kinds[i] = static_cast<TokenKind>(type);
    if (vocabulary.kinds[i] == TokenKind::byte && !byte_of_token(vocabulary.tokens[i])) {
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
    return make_error(ErrorCode::corrupt_file,
                      "key '{}' {} {}, but the vocabulary has only {} tokens", key,
                      given ? "is" : "is missing and its default is", *id, n_tokens);
  }
  return std::optional<TokenId>(static_cast<TokenId>(*id));
}

/// Ids that mean something to us. `default_id` is what the format says where the SentencePiece
/// kind ("llama") has no key; byte-level kinds have no defaults.
struct NamedId {
  const char* name;
  TokenId default_id;  // -1: none
  bool ends;
};
constexpr NamedId kNamedIds[] = {
    {"bos", 1, false}, {"eos", 2, true},  {"unknown", 0, false},
    {"eot", -1, true}, {"eom", -1, true},
};

void find_end_texts(Vocabulary& vocabulary) {
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    if (vocabulary.kinds[i] == TokenKind::control &&
        std::ranges::find(kEndTexts, vocabulary.tokens[i]) != std::end(kEndTexts))
      vocabulary.end_tokens.push_back(static_cast<TokenId>(i));
  }
  auto& ends = vocabulary.end_tokens;
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
}

Status read_ids(const gguf::Header& header, Vocabulary& vocabulary) {
  const size_t n = vocabulary.tokens.size();
  // What the file says comes before what it leaves out, so that the error names the file's own
  // fault. Padding, fill-in-the-middle and whatever comes are not used, but never out of range.
  for (const auto& entry : header.metadata()) {
    if (!entry.key.starts_with("tokenizer.ggml.") || !entry.key.ends_with("_token_id")) continue;
    auto id = read_id(header, std::string(entry.key), -1, n);
    if (!id) return std::move(id).error();
  }
  const bool has_defaults = vocabulary.model == "llama";
  for (const auto& entry : kNamedIds) {
    auto id = read_id(header, fmt::format("tokenizer.ggml.{}_token_id", entry.name),
                      has_defaults ? entry.default_id : -1, n);
    if (!id) return std::move(id).error();
    if (entry.name == std::string_view("bos")) vocabulary.bos = *id;
    if (entry.name == std::string_view("eos")) vocabulary.eos = *id;
    if (entry.ends && *id) vocabulary.end_tokens.push_back(**id);
  }
  find_end_texts(vocabulary);
  return {};
}

/// Byte-level BPE is nothing without merges (an empty list says that there are none).
Status read_merges(const gguf::Header& header, Vocabulary& vocabulary) {
  constexpr const char* kMerges = "tokenizer.ggml.merges";
  if (vocabulary.model != "gpt2" && header.find(kMerges) == nullptr) return {};
  auto merges = header.get_strings(kMerges);
  if (!merges) return std::move(merges).error();
  if (merges->size() > INT32_MAX)
    return make_error(ErrorCode::corrupt_file, "key '{}' has {} entries", kMerges, merges->size());
  vocabulary.merges.assign(merges->begin(), merges->end());
  return {};
}

/// What SentencePiece does to a text before it is cut. No file of today asks for more than spaces.
Status read_normalisation(const gguf::Header& header, Vocabulary& vocabulary) {
  constexpr const char* kCharsMap = "tokenizer.ggml.precompiled_charsmap";
  constexpr const char* kRemove = "tokenizer.ggml.remove_extra_whitespaces";
  if (vocabulary.model != "llama") return {};
  auto prefix = header.bool_or("tokenizer.ggml.add_space_prefix", true);
  if (!prefix) return std::move(prefix).error();
  vocabulary.adds_space_prefix = *prefix;
  auto removes = header.bool_or(kRemove, false);
  if (!removes) return std::move(removes).error();
  if (*removes) return make_error(ErrorCode::unsupported, "key '{}' is true, which is not supported", kRemove);
  if (header.find(kCharsMap) != nullptr)
    return make_error(ErrorCode::unsupported, "key '{}' is not supported", kCharsMap);
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
  if (auto s = read_merges(header, vocabulary); !s) return std::move(s).error();
  if (auto s = read_normalisation(header, vocabulary); !s) return std::move(s).error();
  return vocabulary;
}

}  // namespace kvasir
