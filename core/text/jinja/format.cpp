// Values laid out by a format spec.
#include "core/text/jinja/format.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/text/jinja/operators.h"
#include "core/text/jinja/repr.h"
#include "core/text/jinja/unicode.h"

namespace kvasir::jinja {
namespace {

constexpr int kMostPrecision = 400;

bool is_align(char c) {
  return c == '<' || c == '>' || c == '^' || c == '=';
}

int64_t read_number(Context& context, std::string_view text, size_t& at) {
  int64_t value = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    value = value * 10 + (text[at++] - '0');
    if (value > INT32_MAX) {
      context.fail(ErrorCode::limit_exceeded, "a width in a format is too large");
      return 0;
    }
  }
  return value;
}

std::string digits_of(uint64_t magnitude, int base, bool upper) {
  char buffer[70];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, magnitude, base);
  std::string text(buffer, end.ptr);
  for (char& c : text) {
    if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

/// "1234567.89" -> "1,234,567.89"
std::string grouped(const std::string& number, char separator) {
  const size_t whole = std::min(number.find_first_not_of("0123456789"), number.size());
  std::string text;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % 3 == 0) text += separator;
    text += number[i];
  }
  return text + number.substr(whole);
}

std::string integer_digits(int64_t value, const FormatSpec& spec) {
  const uint64_t magnitude =
      value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  switch (spec.type) {
    case 'x':
      return (spec.alternate ? "0x" : "") + digits_of(magnitude, 16, false);
    case 'X':
      return (spec.alternate ? "0X" : "") + digits_of(magnitude, 16, true);
    case 'o':
      return (spec.alternate ? "0o" : "") + digits_of(magnitude, 8, false);
    case 'b':
      return (spec.alternate ? "0b" : "") + digits_of(magnitude, 2, false);
    default:
      return digits_of(magnitude, 10, false);
  }
}

std::string real_digits(double magnitude, const FormatSpec& spec) {
  if (std::isnan(magnitude)) return "nan";
  if (std::isinf(magnitude)) return "inf";
  if (spec.type == 0 && spec.precision < 0) return float_repr(magnitude);
  const char type = static_cast<char>(spec.type == 0 ? 'g' : spec.type | 0x20);
  const double shown = type == '%' ? magnitude * 100 : magnitude;
  int precision = spec.precision < 0 ? 6 : spec.precision;
  if ((type == 'g' || type == 'n') && precision == 0) precision = 1;
  const auto format = type == 'e'                  ? std::chars_format::scientific
                      : type == 'g' || type == 'n' ? std::chars_format::general
                                                   : std::chars_format::fixed;
  char buffer[400 + kMostPrecision];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, shown, format, precision);
  std::string text(buffer, end.ptr);
  if (spec.type == '%') text += '%';
  if (spec.type == 0 && text.find_first_of(".e") == std::string::npos) text += ".0";
  if (spec.type >= 'A' && spec.type <= 'Z') {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return c == 'e' ? 'E' : c; });
  }
  return text;
}

void append_fill(TextBuilder& out, const std::string& fill, int64_t n) {
  for (int64_t i = 0; i < n && out.context().step(); ++i) out.append_markup(fill);
}

void append_padded_text(TextBuilder& out, const Text& text, const FormatSpec& spec) {
  size_t end = text.bytes.size();
  if (spec.precision >= 0) {
    end = offset_of_character(text.bytes, static_cast<size_t>(spec.precision));
  }
  const auto size =
      static_cast<int64_t>(count_characters(std::string_view(text.bytes).substr(0, end)));
  const int64_t missing = std::max<int64_t>(spec.width - size, 0);
  const int64_t left = spec.align == '>' ? missing : spec.align == '^' ? missing / 2 : 0;
  append_fill(out, spec.fill, left);
  out.append(text, 0, end);
  append_fill(out, spec.fill, missing - left);
}

void append_padded_number(TextBuilder& out, bool is_negative, const std::string& digits,
                          const FormatSpec& spec) {
  const std::string sign = is_negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  const int64_t missing =
      std::max<int64_t>(spec.width - static_cast<int64_t>(sign.size() + digits.size()), 0);
  const int64_t left = spec.align == '<' ? 0 : spec.align == '^' ? missing / 2 : missing;
  if (spec.align == '=') out.append_markup(sign);
  append_fill(out, spec.fill, left);
  if (spec.align != '=') out.append_markup(sign);
  out.append_markup(digits);
  append_fill(out, spec.fill, missing - left);
}

}  // namespace

FormatSpec read_spec(Context& context, std::string_view text) {
  FormatSpec spec;
  size_t at = 0;
  const auto peek = [&] { return at < text.size() ? text[at] : '\0'; };
  if (!text.empty()) {
    const size_t n = character_at(text, 0).n_bytes;
    if (n < text.size() && is_align(text[n])) {
      spec.fill = std::string(text.substr(0, n));
      spec.align = text[n];
      at = n + 1;
    } else if (is_align(text[0])) {
      spec.align = text[0];
      at = 1;
    }
  }
  if (peek() == '+' || peek() == '-' || peek() == ' ') spec.sign = text[at++];
  if (peek() == '#') {
    spec.alternate = true;
    ++at;
  }
  if (peek() == '0') {
    if (spec.align == 0) {
      spec.align = '=';
      spec.fill = "0";
    }
    ++at;
  }
  spec.width = read_number(context, text, at);
  if (peek() == ',' || peek() == '_') spec.thousands = text[at++];
  if (peek() == '.') {
    ++at;
    spec.precision = static_cast<int>(read_number(context, text, at));
  }
  if (at < text.size()) spec.type = text[at++];
  if (at < text.size()) context.fail("invalid format specifier '{}'", shortened(text));
  return spec;
}

void append_formatted(TextBuilder& out, const Value& value, const FormatSpec& spec) {
  Context& context = out.context();
  const bool wants_real =
      spec.type != 0 && std::string_view("eEfFgGn%").find(spec.type) != std::string_view::npos;
  const bool wants_integer =
      spec.type != 0 && std::string_view("dxXobc").find(spec.type) != std::string_view::npos;
  const bool is_number = value.is_number() && !(value.is(Type::boolean) && spec.type == 0);
  if (spec.precision > kMostPrecision && is_number) {
    context.fail(ErrorCode::limit_exceeded, "a precision above {} in a format", kMostPrecision);
    return;
  }
  if (!is_number || spec.type == 's') {
    if (wants_real || wants_integer || spec.align == '=') {
      context.fail("format '{}' does not fit a value of type '{}'",
                   spec.type == 0 ? '=' : spec.type, type_name(value));
      return;
    }
    const Value text = str_of(context, value);
    if (!context.failed()) append_padded_text(out, text.text(), spec);
    return;
  }
  if (spec.type != 0 && !wants_real && !wants_integer) {
    context.fail("unknown format code '{}'", spec.type);
    return;
  }
  if (value.is_integral() && !wants_real) {
    if (spec.type == 'c') {
      context.fail(ErrorCode::unsupported, "the format code 'c' is not supported");
      return;
    }
    std::string digits = integer_digits(value.as_integer(), spec);
    if (spec.thousands != 0) digits = grouped(digits, spec.thousands);
    append_padded_number(out, value.as_integer() < 0, digits, spec);
    return;
  }
  if (wants_integer) {
    context.fail("format code '{}' needs an integer", spec.type);
    return;
  }
  const double number = value.as_number();
  std::string digits = real_digits(std::abs(number), spec);
  if (spec.thousands != 0) digits = grouped(digits, spec.thousands);
  append_padded_number(out, std::signbit(number) && !std::isnan(number), digits, spec);
}

}  // namespace kvasir::jinja
