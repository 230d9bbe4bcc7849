#include "core/text/jinja/string_literal.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "core/base/error.h"
#include "core/text/jinja/unicode.h"

namespace kvasir::jinja {
namespace {

bool is_decimal(char c) {
  return c >= '0' && c <= '9';
}

int hex_value(char c) {
  if (is_decimal(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Digits that may be parted by single underscores, from `at`; appended without them to `digits`.
size_t read_digits(std::string_view text, size_t at, int base, std::string& digits) {
  const size_t begin = at;
  const auto fits = [&](size_t i) {
    return i < text.size() && hex_value(text[i]) >= 0 && hex_value(text[i]) < base;
  };
  while (true) {
    if (fits(at)) {
      digits += text[at++];
    } else if (at < text.size() && text[at] == '_' && at > begin && fits(at + 1)) {
      ++at;
    } else {
      return at;
    }
  }
}

/// End of a float that begins at `at`, or `at` when what stands there is none.
size_t read_real(std::string_view text, size_t at, std::string& digits) {
  if (at > 0 && text[at - 1] == '.') return at;
  size_t end = read_digits(text, at, 10, digits);
  bool real = false;
  if (end + 1 < text.size() && text[end] == '.' && is_decimal(text[end + 1])) {
    digits += '.';
    end = read_digits(text, end + 1, 10, digits);
    real = true;
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    size_t exponent = end + 1;
    const bool is_signed =
        exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-');
    if (is_signed) ++exponent;
    if (exponent < text.size() && is_decimal(text[exponent])) {
      digits += 'e';
      if (is_signed && text[exponent - 1] == '-') digits += '-';
      end = read_digits(text, exponent, 10, digits);
      real = true;
    }
  }
  return real ? end : at;
}

struct Escape {
  char letter;
  int32_t code;
};
constexpr Escape kEscapes[] = {{'n', '\n'}, {'t', '\t'}, {'r', '\r'}, {'\\', '\\'}, {'\'', '\''},
                               {'"', '"'},  {'a', 7},    {'b', 8},    {'f', 12},    {'v', 11}};

/// \xhh, \uhhhh, \Uhhhhhhhh: `n` hex digits after the letter at `at`.
Status append_hex(std::string_view text, size_t at, size_t n, std::string& out) {
  int64_t code = 0;
  for (size_t i = 1; i <= n; ++i) {
    const int digit = at + i < text.size() ? hex_value(text[at + i]) : -1;
    if (digit < 0) {
      return make_error(ErrorCode::invalid_argument, "truncated \\{} escape in a string", text[at]);
    }
    code = code * 16 + digit;
  }
  if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
    return make_error(ErrorCode::invalid_argument, "the escape \\{} in a string is no character",
                      text.substr(at, n + 1));
  }
  append_utf8(out, static_cast<int32_t>(code));
  return {};
}

}  // namespace

NumberLiteral read_number(std::string_view text, size_t at) {
  NumberLiteral number;
  std::string digits;
  if (const size_t end = read_real(text, at, digits); end > at) {
    number.length = end - at;
    number.is_real = true;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number.real);
    if (read.ec == std::errc::result_out_of_range) {
      // Too small is 0, too large is infinity, as in Python.
      number.real = digits.find("e-") == std::string::npos ? HUGE_VAL : 0.0;
    }
    return number;
  }
  digits.clear();
  int base = 10;
  size_t begin = at;
  if (text[at] == '0' && at + 1 < text.size()) {
    const char letter = static_cast<char>(text[at + 1] | 0x20);
    base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
    if (base != 10) begin = at + 2;
  }
  size_t end = begin;
  if (base != 10 && end < text.size() && text[end] == '_') ++end;
  end = read_digits(text, end, base, digits);
  if (digits.empty()) {  // "0x" with nothing after it is 0 and a name
    number.length = 1;
    return number;
  }
  if (base == 10 && digits[0] == '0') {  // zeros only: "012" is 0 and then 12
    end = at;
    while (end < text.size() && text[end] == '0') ++end;
    number.length = end - at;
    return number;
  }
  number.length = end - at;
  const auto read =
      std::from_chars(digits.data(), digits.data() + digits.size(), number.integer, base);
  number.is_too_large = read.ec != std::errc{};
  return number;
}

Result<std::string> unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char letter = text[++i];
    const auto* simple = std::find_if(std::begin(kEscapes), std::end(kEscapes),
                                      [&](const Escape& e) { return e.letter == letter; });
    if (simple != std::end(kEscapes)) {
      out += static_cast<char>(simple->code);
    } else if (letter == '\n') {
      // a line that goes on
    } else if (letter == 'x' || letter == 'u' || letter == 'U') {
      const size_t n = letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
      if (auto s = append_hex(text, i, n, out); !s) return std::move(s).error();
      i += n;
    } else if (letter == 'N') {
      return make_error(ErrorCode::unsupported, "\\N escapes in strings are not supported");
    } else if (letter >= '0' && letter <= '7') {
      int32_t code = 0;
      size_t n = 0;
      for (; n < 3 && i + n < text.size() && text[i + n] >= '0' && text[i + n] <= '7'; ++n) {
        code = code * 8 + (text[i + n] - '0');
      }
      append_utf8(out, code);
      i += n - 1;
    } else {
      out += '\\';
      out += letter;
    }
  }
  return out;
}

}  // namespace kvasir::jinja
