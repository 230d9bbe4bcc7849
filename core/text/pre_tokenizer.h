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

  /// Calls `use` for every piece of `text` in order; the pieces joined are the text. Bytes that are
  /// not UTF-8 are pieces of their own, maximal runs together.
  Status split(std::string_view text, const std::function<void(std::string_view)>& use) const;

 private:
  PreTokenizer();
  struct Expression;
  Status split_stage(std::string_view text, size_t stage,
                     const std::function<void(std::string_view)>& use) const;
  std::vector<Expression> stages_;
};

}  // namespace kvasir
