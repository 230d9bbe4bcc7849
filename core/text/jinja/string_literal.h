// Numbers and strings as a template spells them (Python's literals).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kvasir/result.h"

namespace kvasir::jinja {

struct NumberLiteral {
  size_t length = 0;
  bool is_real = false;
  bool is_too_large = false;  ///< an integer past 64 bits
  int64_t integer = 0;
  double real = 0;
};

/// The number that begins at `at`, where a digit stands.
NumberLiteral read_number(std::string_view text, size_t at);

/// The inside of a quoted string with its escapes replaced. Errors have no line.
Result<std::string> unescape(std::string_view text);

}  // namespace kvasir::jinja
