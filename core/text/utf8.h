// UTF-8 made whole: validation, and assembling text that arrives in pieces of tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kvasir {

/// Offset of the first byte that is not valid UTF-8 (RFC 3629: no overlong forms, no surrogates,
/// nothing past U+10FFFF), or nothing when all of it is valid.
std::optional<size_t> find_invalid_utf8(std::string_view bytes);

/// Turns a byte stream into text that is whole at every step: a character is given out when its
/// last byte has come; a byte sequence that cannot become a character gives one U+FFFD for each
/// maximal invalid part (Unicode, "substitution of maximal subparts").
class Utf8Assembler {
 public:
  /// Whole characters that `bytes` completes. May be empty.
  std::string push(std::string_view bytes);

  /// What is left at the end: one U+FFFD when a character was unfinished, else empty.
  std::string finish();

 private:
  std::string pending_;  // at most 3 bytes of an unfinished character
};

}  // namespace kvasir
