#include "core/text/jinja/strings.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/text/jinja/find_bytes.h"
#include "core/text/jinja/operators.h"
#include "core/text/jinja/repr.h"
#include "core/text/jinja/unicode.h"

namespace kvasir::jinja {
namespace {

bool is_stripped(int32_t code, const Text* characters) {
  if (characters == nullptr) return is_space(code);
  std::string spelled;
  append_utf8(spelled, code);
  return characters->bytes.find(spelled) != std::string::npos;
}

bool is_cased(int32_t code) {
  return is_upper(code) || is_lower(code) || to_title(code) != to_lower(code);
}

constexpr int32_t kSigma = 0x3A3;
constexpr size_t kLongestRun = 4096;

/// One character in another case. `starts_word`: no cased letter stands before it.
void append_cased(std::string& out, int32_t code, Case to, bool starts_word) {
  const bool upwards = to == Case::upper || (to == Case::swap && !is_upper(code)) ||
                       ((to != Case::lower && to != Case::swap) && starts_word);
  if (code < 0x80) {
    const bool is_small = code >= 'a' && code <= 'z', is_big = code >= 'A' && code <= 'Z';
    out.assign(1, static_cast<char>(upwards && is_small  ? code - 32
                                    : !upwards && is_big ? code + 32
                                                         : code));
  } else if (!upwards) {
    out = to_lower(code);
  } else {
    out = to == Case::title || to == Case::capitalize ? to_title(code) : to_upper(code);
  }
}

/// A sigma is final when it is the last letter of a word of more than one.
bool ends_word(std::string_view text, size_t at, size_t n_bytes) {
  if (at == 0 || !is_letter(character_at(text, previous_character(text, at)).code)) return false;
  return at + n_bytes == text.size() || !is_letter(character_at(text, at + n_bytes).code);
}

/// What the filter `title` (unlike the method) cuts words at.
bool opens_word(int32_t code) {
  return code == '-' || code == '(' || code == '{' || code == '[' || code == '<' || is_space(code);
}

std::string trimmed(std::string_view text) {
  size_t begin = 0, end = text.size();
  while (begin < end && is_space(character_at(text, begin).code)) {
    begin += character_at(text, begin).n_bytes;
  }
  while (end > begin) {
    const size_t previous = previous_character(text, end);
    if (!is_space(character_at(text, previous).code)) break;
    end = previous;
  }
  return std::string(text.substr(begin, end - begin));
}

/// Drops the underscores that Python allows between digits; false when one stands elsewhere.
bool drop_underscores(std::string& text) {
  const auto is_alphanumeric = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  std::string kept;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      kept += text[i];
    } else if (i == 0 || i + 1 == text.size() || !is_alphanumeric(text[i - 1]) ||
               !is_alphanumeric(text[i + 1])) {
      return false;
    }
  }
  text = std::move(kept);
  return true;
}

}  // namespace

const Text* text_argument(Context& context, const Value& value, std::string_view call) {
  if (value.is(Type::string)) return &value.text();
  if (value.is_undefined() && value.undefined_object() != nullptr) {
    context.fail("{}", value.undefined_object()->message);
  } else {
    context.fail("'{}' needs a string, not '{}'", call, type_name(value));
  }
  return nullptr;
}

int64_t integer_argument(Context& context, const Value& value, int64_t otherwise,
                         std::string_view call) {
  if (value.is(Type::missing) || value.is(Type::none)) return otherwise;
  if (value.is_integral()) return value.as_integer();
  context.fail("'{}' needs an integer, not '{}'", call, type_name(value));
  return otherwise;
}

Value strip(Context& context, const Text& text, Ends ends, const Text* characters) {
  const std::string_view bytes = text.bytes;
  size_t begin = 0, end = bytes.size();
  const int64_t cost =
      characters == nullptr ? 1 : 1 + static_cast<int64_t>(characters->bytes.size() / 64);
  size_t looked_at = 0;
  const auto charged = [&] { return ++looked_at % 4 != 0 || context.step(cost); };
  while (ends != Ends::right && begin < end && charged()) {
    const Character c = character_at(bytes, begin);
    if (!is_stripped(c.code, characters)) break;
    begin += c.n_bytes;
  }
  while (ends != Ends::left && end > begin && charged()) {
    const size_t previous = previous_character(bytes, end);
    if (!is_stripped(character_at(bytes, previous).code, characters)) break;
    end = previous;
  }
  return substring(context, text, begin, end);
}

Value change_case(Context& context, const Text& text, Case to) {
  TextBuilder out(context);
  out.reserve(text.bytes.size());
  OriginCursor origin(text);
  bool starts_word = true;
  std::string cased, run;  // run: characters of one origin
  bool run_is_content = false;
  for (size_t at = 0, n = 0; at < text.bytes.size(); ++n) {
    if (n % 4 == 0 && !context.step()) break;
    const Character c = character_at(text.bytes, at);
    append_cased(cased, c.code, to, starts_word);
    if (c.code == kSigma && cased == "σ" && ends_word(text.bytes, at, c.n_bytes)) cased = "ς";
    const bool is_content = origin.is_content(at);
    if (is_content != run_is_content || run.size() > kLongestRun) {
      out.append(run, run_is_content);
      run.clear();
      run_is_content = is_content;
    }
    run += cased;
    starts_word =
        (to == Case::title && !is_cased(c.code)) || (to == Case::jinja_title && opens_word(c.code));
    at += c.n_bytes;
  }
  out.append(run, run_is_content);
  return make_string(out);
}

bool has_only_case(Context& context, const Text& text, bool upper) {
  context.step(static_cast<int64_t>(text.bytes.size() / 16));
  bool any = false;
  for (size_t at = 0; at < text.bytes.size();) {
    const Character c = character_at(text.bytes, at);
    if (upper ? is_lower(c.code) : is_upper(c.code)) return false;
    any = any || (upper ? is_upper(c.code) : is_lower(c.code));
    at += c.n_bytes;
  }
  return any;
}

Value replace(Context& context, const Text& text, const Text& old, const Text& with,
              int64_t count) {
  TextBuilder out(context);
  const std::string_view bytes = text.bytes;
  if (!context.step(static_cast<int64_t>(bytes.size() / 16))) return {};
  size_t at = 0;
  int64_t done = 0;
  if (old.bytes.empty()) {  // between all characters
    while (done != count && context.step()) {
      out.append(with);
      ++done;
      if (at >= bytes.size()) break;
      const size_t n = character_at(bytes, at).n_bytes;
      out.append(text, at, at + n);
      at += n;
    }
  } else {
    while (done != count) {
      const size_t found = find_bytes(bytes, old.bytes, at);
      if (found == std::string_view::npos || !context.step()) break;
      out.append(text, at, found);
      out.append(with);
      at = found + old.bytes.size();
      ++done;
    }
  }
  if (at < bytes.size()) out.append(text, at, bytes.size());
  return make_string(out);
}

Value split(Context& context, const Text& text, const Text* separator, int64_t most) {
  const std::string_view bytes = text.bytes;
  std::vector<Value> pieces;
  if (!context.step(static_cast<int64_t>(bytes.size() / 16))) return {};
  size_t at = 0;
  const auto add = [&](size_t begin, size_t end) {
    pieces.push_back(substring(context, text, begin, end));
    return context.step();
  };
  const auto skip_spaces = [&] {
    while (at < bytes.size() && is_space(character_at(bytes, at).code)) {
      at += character_at(bytes, at).n_bytes;
    }
  };
  if (separator != nullptr) {
    if (separator->bytes.empty()) {
      context.fail("empty separator");
      return {};
    }
    while (most < 0 || static_cast<int64_t>(pieces.size()) < most) {
      const size_t found = find_bytes(bytes, separator->bytes, at);
      if (found == std::string_view::npos || !add(at, found)) break;
      at = found + separator->bytes.size();
    }
    add(at, bytes.size());
    return make_list(context, std::move(pieces));
  }
  skip_spaces();
  while (at < bytes.size()) {
    const size_t begin = at;
    if (most >= 0 && static_cast<int64_t>(pieces.size()) == most) {
      at = bytes.size();  // the rest as it is, trailing whitespace too
      add(begin, at);
      break;
    }
    while (at < bytes.size() && !is_space(character_at(bytes, at).code)) {
      at += character_at(bytes, at).n_bytes;
    }
    if (!add(begin, at)) break;
    skip_spaces();
  }
  return make_list(context, std::move(pieces));
}

Value split_from_right(Context& context, const Text& text, const Text* separator, int64_t most) {
  if (most < 0) return split(context, text, separator, most);
  const std::string_view bytes = text.bytes;
  std::vector<Value> pieces;
  if (!context.step(static_cast<int64_t>(bytes.size() / 16))) return {};
  size_t end = bytes.size();
  const auto space_before = [&](size_t at) {
    return at > 0 && is_space(character_at(bytes, previous_character(bytes, at)).code);
  };
  while (separator == nullptr && space_before(end)) end = previous_character(bytes, end);
  bool is_done = separator == nullptr && end == 0;
  while (!is_done && static_cast<int64_t>(pieces.size()) < most && context.step()) {
    if (separator != nullptr) {
      if (separator->bytes.empty()) {
        context.fail("empty separator");
        return {};
      }
      if (end < separator->bytes.size()) break;
      const size_t found = find_bytes_from_right(context, bytes.substr(0, end), separator->bytes);
      if (found == std::string_view::npos) break;
      pieces.push_back(substring(context, text, found + separator->bytes.size(), end));
      end = found;
    } else {
      size_t begin = end;
      while (begin > 0 && !space_before(begin)) begin = previous_character(bytes, begin);
      pieces.push_back(substring(context, text, begin, end));
      end = begin;
      while (space_before(end)) end = previous_character(bytes, end);
      is_done = end == 0;
    }
  }
  if (!is_done) {
    pieces.push_back(substring(context, text, 0, end));
  }
  std::reverse(pieces.begin(), pieces.end());
  return make_list(context, std::move(pieces));
}

Value split_lines(Context& context, const Text& text, bool keep_ends) {
  const std::string_view bytes = text.bytes;
  std::vector<Value> lines;
  if (!context.step(static_cast<int64_t>(bytes.size() / 16))) return {};
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size() && !context.failed();) {
    const Character c = character_at(bytes, at);
    size_t next = at + c.n_bytes;
    if (is_line_break(c.code)) {
      if (c.code == '\r' && next < bytes.size() && bytes[next] == '\n') ++next;
      lines.push_back(substring(context, text, begin, keep_ends ? next : at));
      context.step();
      begin = next;
    }
    at = next;
  }
  if (begin < bytes.size()) lines.push_back(substring(context, text, begin, bytes.size()));
  return make_list(context, std::move(lines));
}

Value join(Context& context, const Text& separator, const std::vector<Value>& items) {
  TextBuilder out(context);
  for (size_t i = 0; i < items.size() && context.step(); ++i) {
    if (i > 0) out.append(separator);
    append_str(out, items[i]);
  }
  return make_string(out);
}

std::optional<int64_t> read_integer(std::string_view text, int base) {
  std::string digits = trimmed(text);
  bool is_negative = false;
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) {
    is_negative = digits[0] == '-';
    digits.erase(0, 1);
  }
  const auto prefix = [&](char letter) {
    return digits.size() > 2 && digits[0] == '0' && (digits[1] | 0x20) == letter;
  };
  if ((base == 16 || base == 0) && prefix('x')) {
    base = 16;
    digits.erase(0, 2);
  } else if ((base == 8 || base == 0) && prefix('o')) {
    base = 8;
    digits.erase(0, 2);
  } else if ((base == 2 || base == 0) && prefix('b')) {
    base = 2;
    digits.erase(0, 2);
  }
  if (!drop_underscores(digits) || digits.empty() || digits[0] == '-') return std::nullopt;
  if (is_negative) digits.insert(0, 1, '-');
  int64_t value = 0;
  const auto read =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base == 0 ? 10 : base);
  if (read.ec != std::errc{} || read.ptr != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<double> read_real(std::string_view text) {
  std::string digits = trimmed(text);
  if (!drop_underscores(digits)) return std::nullopt;
  bool is_negative = false;
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) {
    is_negative = digits[0] == '-';
    digits.erase(0, 1);
  }
  if (digits.empty() || digits[0] == '-' || digits.find('(') != std::string::npos) {
    return std::nullopt;
  }
  double value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (read.ptr != digits.data() + digits.size()) return std::nullopt;
  if (read.ec == std::errc::result_out_of_range) {
    value = digits.find("e-") == std::string::npos && digits.find("E-") == std::string::npos
                ? HUGE_VAL
                : 0.0;
  } else if (read.ec != std::errc{}) {
    return std::nullopt;
  }
  return is_negative ? -value : value;
}

}  // namespace kvasir::jinja
