// Cutting text into the pieces that merges never cross.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"

namespace kvasir {

/// A named sequence of expressions (PCRE2 syntax, UTF and UCP), each cutting the pieces of the one
/// before: a match is a piece, and so is what lies between matches. Immutable, thread-safe.
class PreTokenizer {
 public:
  /// `name` as in `tokenizer.ggml.pre`; unsupported names what is known.
  static Result<std::unique_ptr<PreTokenizer>> named(std::string_view name);
  ~PreTokenizer();

  using Use = std::function<Status(std::string_view piece)>;
  /// Calls `use` for every piece of `text` in order until it fails; the pieces joined are the text,
  /// and views into it. Bytes that are not UTF-8 are pieces of their own, maximal runs together
  /// (a tokenizer of Unicode text never sees such bytes; so whole characters around them are cut as
  /// if the text ended there, and nothing is lost).
  Status split(std::string_view text, const Use& use) const;

 private:
  PreTokenizer();
  struct Expression;
  class Cut;
  std::vector<Expression> stages_;
};

}  // namespace kvasir
