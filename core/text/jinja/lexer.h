// Template text to tokens, with Jinja's whitespace rules as Hugging Face sets them
// (trim_blocks, lstrip_blocks; https://jinja.palletsprojects.com/en/stable/templates/).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::jinja {

enum class TokenType : uint8_t {
  data,  ///< literal text
  block_begin,
  block_end,
  variable_begin,
  variable_end,
  name,
  string,
  integer,
  real,
  symbol,
  end,
};

struct Token {
  TokenType type = TokenType::end;
  int line = 0;
  std::string text;  ///< of data, names, strings (unescaped) and symbols
  int64_t integer = 0;
  double real = 0;
};

/// Bounds on what a template may be; the largest ones on model hubs are below 64 KiB.
inline constexpr size_t kMostTemplateBytes = size_t{512} << 10;
inline constexpr size_t kMostTemplateTokens = 100'000;

/// The last token is `end`. `source` must be valid UTF-8. Errors begin with the line.
Result<std::vector<Token>> tokenize_template(std::string_view source);

}  // namespace kvasir::jinja
