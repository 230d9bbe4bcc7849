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
  std::vector<TokenKind> kinds;          ///< normal where the file has no list
  std::vector<float> scores;             ///< may be empty
  std::vector<std::string_view> merges;  ///< views into the file
  std::optional<TokenId> bos, eos;
  /// Ascending: eos, eot, eom, and every control token whose spelling is known to end answers.
  std::vector<TokenId> end_tokens;
  bool adds_bos = false;  ///< never without a bos
  bool adds_space_prefix = false;  ///< "llama" only: a space is put before a text
  /// A piece that is a token as it stands is that token, whatever the merges would make of it
  /// (Llama 3's BPE). No pre-tokenizer known today asks for it, and GGUF has no key of its own.
  bool ignore_merges = false;

  /// Errors are corrupt_file and name the key at fault.
  static Result<Vocabulary> read(const gguf::Header& header);
};

}  // namespace kvasir
