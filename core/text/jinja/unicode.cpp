#include "core/text/jinja/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace kvasir::jinja {
namespace {

bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

/// Characters whose upper case is several characters (Unicode, SpecialCasing.txt, the Latin,
/// Armenian and ligature part), with their title case.
struct SpecialCase {
  int32_t code;
  const char* upper;
  const char* title;
};
constexpr SpecialCase kSpecialCases[] = {
    {0x00DF, "SS", "Ss"}, {0x0149, "ʼN", "ʼN"}, {0x01F0, "J̌", "J̌"},     {0x0390, "Ϊ́", "Ϊ́"},
    {0x03B0, "Ϋ́", "Ϋ́"},   {0x0587, "ԵՒ", "Եւ"}, {0x1E96, "H̱", "H̱"},     {0x1E97, "T̈", "T̈"},
    {0x1E98, "W̊", "W̊"},   {0x1E99, "Y̊", "Y̊"},   {0x1E9A, "Aʾ", "Aʾ"},   {0xFB00, "FF", "Ff"},
    {0xFB01, "FI", "Fi"}, {0xFB02, "FL", "Fl"}, {0xFB03, "FFI", "Ffi"}, {0xFB04, "FFL", "Ffl"},
    {0xFB05, "ST", "St"}, {0xFB06, "ST", "St"}, {0xFB13, "ՄՆ", "Մն"},   {0xFB14, "ՄԵ", "Մե"},
    {0xFB15, "ՄԻ", "Մի"}, {0xFB16, "ՎՆ", "Վն"}, {0xFB17, "ՄԽ", "Մխ"},
};

const SpecialCase* special_case(int32_t code) {
  const auto* found = std::lower_bound(std::begin(kSpecialCases), std::end(kSpecialCases), code,
                                       [](const SpecialCase& s, int32_t c) { return s.code < c; });
  return found != std::end(kSpecialCases) && found->code == code ? found : nullptr;
}

std::string spelled(int32_t code) {
  std::string text;
  append_utf8(text, code);
  return text;
}

}  // namespace

Character character_at(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return {lead, 1};
  const size_t n = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  int32_t code = lead & (0xFF >> (n + 1));
  for (size_t i = 1; i < n && at + i < text.size(); ++i) {
    code = (code << 6) | (static_cast<unsigned char>(text[at + i]) & 0x3F);
  }
  return {code, std::min(n, text.size() - at)};
}

size_t previous_character(std::string_view text, size_t at) {
  --at;
  while (at > 0 && continues(text[at])) --at;
  return at;
}

size_t count_characters(std::string_view text) {
  size_t n = 0;
  for (const char byte : text) n += continues(byte) ? 0 : 1;
  return n;
}

size_t offset_of_character(std::string_view text, size_t index) {
  size_t at = 0;
  while (at < text.size() && index > 0) {
    ++at;
    while (at < text.size() && continues(text[at])) ++at;
    --index;
  }
  return at;
}

void append_utf8(std::string& text, int32_t code) {
  const auto put = [&](int32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

bool is_space(int32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool is_line_break(int32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

bool is_letter(int32_t c) {
  const auto category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_digit(int32_t c) {
  return utf8proc_category(c) == UTF8PROC_CATEGORY_ND;
}

bool is_word(int32_t c) {
  const auto category = utf8proc_category(c);
  return c == '_' || is_letter(c) ||
         (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

bool is_upper(int32_t c) {
  return utf8proc_category(c) == UTF8PROC_CATEGORY_LU;
}
bool is_lower(int32_t c) {
  return utf8proc_category(c) == UTF8PROC_CATEGORY_LL || c == 0xAA || c == 0xBA;
}

bool is_printable(int32_t c) {
  const auto category = utf8proc_category(c);
  const bool hidden = category == UTF8PROC_CATEGORY_CN ||
                      (category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_CO);
  return c == ' ' || !hidden;
}

std::string to_upper(int32_t code) {
  if (const auto* special = special_case(code)) return special->upper;
  return spelled(utf8proc_toupper(code));
}

std::string to_lower(int32_t code) {
  if (code == 0x0130) return "i̇";
  return spelled(utf8proc_tolower(code));
}

std::string to_title(int32_t code) {
  if (const auto* special = special_case(code)) return special->title;
  return spelled(utf8proc_totitle(code));
}

}  // namespace kvasir::jinja
