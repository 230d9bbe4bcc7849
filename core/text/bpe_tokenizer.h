// Byte-level byte pair encoding (Sennrich et al. 2016; Radford et al. 2019).
#pragma once

#include <array>
#include <memory>
#include <unordered_map>

#include "core/text/bpe_merges.h"
#include "core/text/marked_tokens.h"
#include "core/text/pre_tokenizer.h"
#include "core/text/tokenizer.h"
#include "core/text/vocabulary.h"

namespace kvasir {

/// What a vocabulary's entries are here:
/// - normal: made by merges, spelled with the characters of byte_level.h; all different.
/// - byte ("<0x1D>"): stands for that byte where no normal entry spells it.
/// - user_defined: found in any text before it is cut, spelled as it is.
/// - control: found only with SpecialTokens::parse; adds no bytes to a text.
/// - unknown, unused: never made, add no bytes.
///
/// decode(encode(x)) == x for every x that is encoded. A vocabulary need not spell every byte (that
/// of SmolLM2 lacks 21 of them, 0x1D and 0xFF among them): a text with such a byte is an error that
/// names the byte and its offset. Hugging Face's tokenizers and llama.cpp drop the byte without a
/// word.
class BpeTokenizer final : public Tokenizer {
 public:
  /// Errors name the token or merge at fault: an entry that spells no bytes, two equal entries, a
  /// merge that is malformed, comes twice, or joins or makes what is no normal entry. (Of two equal
  /// merges llama.cpp obeys the first and Hugging Face the last: such a file has no one meaning.)
  static Result<std::unique_ptr<BpeTokenizer>> create(Vocabulary vocabulary);

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
  /// One call of encode: the text, its ids so far, and memory used again from piece to piece.
  struct Encoding;
  Status read_tokens();
  Status read_token(TokenId id);
  Status read_merges();
  Status encode_plain(std::string_view part, Encoding& encoding) const;
  Status encode_piece(std::string_view piece, Encoding& encoding) const;

  Vocabulary vocabulary_;
  std::unique_ptr<PreTokenizer> pre_tokenizer_;
  std::vector<std::string> bytes_;                          // of each token
  std::unordered_map<std::string_view, TokenId> by_bytes_;  // normal tokens, by their bytes
  std::array<TokenId, 256> byte_ids_{};                     // -1: the vocabulary cannot spell it
  BpeMerges merges_;
  MarkedTokens added_;  // user-defined tokens
  MarkedTokens added_and_control_;
};

}  // namespace kvasir
