// Text to token ids and back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/gguf.h"
#include "kvasir/result.h"

namespace kvasir {

using TokenId = int32_t;

/// What a vocabulary entry is; the values are GGUF's `tokenizer.ggml.token_type`.
enum class TokenKind : int32_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

/// How markup in the text is treated.
enum class SpecialTokens {
  as_text,  ///< "<|im_end|>" typed by a person stays text
  parse,    ///< control tokens' spelling becomes the control token
};

/// Immutable after load; every call is thread-safe and reentrant.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Reads `tokenizer.ggml.*`; keeps nothing of `header`. The error names what is unknown or
  /// inconsistent: model kind, pre-tokenizer, an id past the vocabulary, a malformed byte token, a
  /// short score list.
  static Result<std::unique_ptr<Tokenizer>> from_gguf(const gguf::Header& header);

  /// Ids of `text`, without BOS or EOS. User-defined (added) tokens are always recognised,
  /// control tokens only with SpecialTokens::parse; the leftmost, then the longest spelling counts.
  /// Any bytes may come, UTF-8 or not. A byte that the vocabulary cannot spell is invalid_argument
  /// naming it and its offset: nothing of a text is dropped.
  virtual Result<std::vector<TokenId>> encode(std::string_view text,
                                              SpecialTokens special) const = 0;

  /// The bytes that `id` adds to the text (control, unknown and unused ones: none). `id` must be in
  /// range.
  virtual std::string_view token_bytes(TokenId id) const = 0;

  /// The spelling in the vocabulary as a person should see it ("<|im_end|>" for a control token).
  virtual std::string_view token_text(TokenId id) const = 0;
  virtual TokenKind token_kind(TokenId id) const = 0;
  virtual int64_t n_vocab() const = 0;

  virtual std::optional<TokenId> bos() const = 0;
  virtual std::optional<TokenId> eos() const = 0;
  /// True when the file says that a raw prompt begins with BOS.
  virtual bool adds_bos() const = 0;
  /// Every id that ends a generation (eos, eot, and the like), ascending.
  virtual std::span<const TokenId> end_tokens() const = 0;
  /// "gpt2 / smollm" for inspect.
  virtual std::string description() const = 0;

  /// The bytes of all ids joined.
  std::string decode(std::span<const TokenId> ids) const;
};

}  // namespace kvasir
