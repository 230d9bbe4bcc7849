// The vocabulary of a GGUF file, checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/gguf.h"
#include "core/text/tokenizer.h"
#include "kvasir/result.h"

namespace kvasir {

/// `tokenizer.ggml.*` of any model kind. Every list has as many entries as `tokens` where it is
/// given at all, every id is inside it, byte tokens are spelled exactly, scores are finite.
struct Vocabulary {
  std::string model;  ///< "gpt2", "llama", ...
  std::string pre;    ///< pre-tokenizer's name; empty when the file has none
  std::vector<std::string> tokens;
  std::vector<TokenKind> kinds;  ///< normal where the file has no list
  std::vector<float> scores;     ///< may be empty
  std::vector<std::string_view> merges;  ///< views into the file
  std::optional<TokenId> bos, eos;
  std::vector<TokenId> end_tokens;  ///< ascending
  bool adds_bos = false;

  /// Errors are corrupt_file and name the key at fault.
  static Result<Vocabulary> read(const gguf::Header& header);
};

}  // namespace kvasir
