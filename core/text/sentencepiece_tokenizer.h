// Byte pair encoding by scores (SentencePiece: Kudo and Richardson 2018).
#pragma once

#include <array>
#include <memory>
#include <unordered_map>

#include "core/text/marked_tokens.h"
#include "core/text/tokenizer.h"
#include "core/text/vocabulary.h"

namespace kvasir {

/// What a vocabulary's entries are here; spaces in the text are U+2581 in all of them:
/// - normal: made by merges. Of all neighbours whose text joined is a normal entry, the pair with
///   the highest score goes first, the leftmost among equals. Characters come from UTF-8; a byte
///   that is none is a symbol of its own.
/// - byte ("<0x0A>"): spells one byte of a symbol that is no entry.
/// - user_defined: found in any text before it is merged, and never part of a merge.
/// - control: found only with SpecialTokens::parse; adds no bytes to a text.
/// - unknown, unused: never made, add no bytes. (An unknown token in place of a character would
///   lose it: a byte that the vocabulary cannot spell is an error that names it.)
///
/// Where the file asks for it (`add_space_prefix`), a space is put before every run of text between
/// marked tokens, as llama.cpp does. decode(encode(x)) is x, but for that space and for U+2581 in
/// x itself, which comes back as a space: SentencePiece cannot tell them apart. (A vocabulary
/// without any piece for a space spells it with the bytes of U+2581, as that library does, and
/// there a space comes back as U+2581.)
class SentencePieceTokenizer final : public Tokenizer {
 public:
  /// Errors name the key or entry at fault: no scores, two equal entries.
  static Result<std::unique_ptr<SentencePieceTokenizer>> create(Vocabulary vocabulary);

  Result<std::vector<TokenId>> encode(std::string_view text, SpecialTokens special) const override;
  std::string_view token_bytes(TokenId id) const override {
    return bytes_[static_cast<size_t>(id)];
  }
  std::string_view token_text(TokenId id) const override {
    return vocabulary_.tokens[static_cast<size_t>(id)];
  }
  TokenKind token_kind(TokenId id) const override {
    return vocabulary_.kinds[static_cast<size_t>(id)];
  }
  int64_t n_vocab() const override { return static_cast<int64_t>(vocabulary_.tokens.size()); }
  std::optional<TokenId> bos() const override { return vocabulary_.bos; }
  std::optional<TokenId> eos() const override { return vocabulary_.eos; }
  bool adds_bos() const override { return vocabulary_.adds_bos; }
  std::span<const TokenId> end_tokens() const override { return vocabulary_.end_tokens; }
  std::string description() const override;

 private:
  class Merging;
  struct Encoding;
  Status read_tokens();
  TokenId find(std::string_view piece) const;  // -1: no normal token
  /// Appends the ids of bytes [begin, end) of the text with its spaces replaced.
  Status encode_plain(size_t begin, size_t end, Encoding& encoding) const;

  Vocabulary vocabulary_;
  std::vector<std::string> bytes_;                         // of each token
  std::unordered_map<std::string_view, TokenId> by_text_;  // normal tokens
  size_t longest_bytes_ = 0;                               // of the normal tokens
  std::array<TokenId, 256> byte_ids_{};                    // -1: no token for it
  MarkedTokens added_;                                     // user-defined tokens
  MarkedTokens added_and_control_;
};

}  // namespace kvasir
