// Byte-level byte pair encoding (Sennrich et al. 2016; Radford et al. 2019).
#pragma once

#include <array>
#include <memory>
#include <unordered_map>

#include "core/text/marked_tokens.h"
#include "core/text/pre_tokenizer.h"
#include "core/text/tokenizer.h"
#include "core/text/vocabulary.h"

namespace kvasir {

class BpeTokenizer final : public Tokenizer {
 public:
  /// Errors name the merge or token at fault. `ignore_merges`: a piece that is in the vocabulary
  /// whole is taken whole, whatever the merges say.
  static Result<std::unique_ptr<BpeTokenizer>> create(Vocabulary vocabulary, bool ignore_merges);

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
  struct Merge {
    int32_t rank;
    TokenId result;
  };
  Status read_merges();
  Status encode_piece(std::string_view piece, std::vector<TokenId>& ids) const;
  Status encode_plain(std::string_view text, std::vector<TokenId>& ids) const;

  Vocabulary vocabulary_;
  bool ignore_merges_ = false;
  std::unique_ptr<PreTokenizer> pre_tokenizer_;
  std::vector<std::string> bytes_;                        // of each token
  std::unordered_map<std::string_view, TokenId> by_bytes_;  // normal tokens, by their bytes
  std::unordered_map<uint64_t, Merge> merges_;            // (left << 32 | right)
  std::array<TokenId, 256> byte_ids_;                     // -1: the vocabulary cannot spell it
  MarkedTokens added_;             // user-defined tokens
  MarkedTokens added_and_control_;
};

}  // namespace kvasir
