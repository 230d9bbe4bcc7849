// Characters as Python's str sees them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kvasir::jinja {

/// A decoded character and the bytes it takes. The text must be valid UTF-8 and not at its end.
struct Character {
  int32_t code = 0;
  size_t n_bytes = 1;
};
Character character_at(std::string_view text, size_t at);
/// Where the character before `at` begins; `at` > 0.
size_t previous_character(std::string_view text, size_t at);
size_t count_characters(std::string_view text);
/// Byte offset of character number `index`; the size when there are fewer.
size_t offset_of_character(std::string_view text, size_t index);
void append_utf8(std::string& text, int32_t code);

bool is_space(int32_t code);       ///< str.isspace
bool is_line_break(int32_t code);  ///< where str.splitlines cuts
bool is_letter(int32_t code);      ///< str.isalpha
bool is_digit(int32_t code);       ///< category Nd
bool is_word(int32_t code);        ///< \w
bool is_upper(int32_t code);
bool is_lower(int32_t code);
bool is_printable(int32_t code);  ///< shown as itself by repr

/// The character in another case, as UTF-8; one may become several ("ß" -> "SS").
std::string to_upper(int32_t code);
std::string to_lower(int32_t code);
std::string to_title(int32_t code);

}  // namespace kvasir::jinja
