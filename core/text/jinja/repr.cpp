#include "core/text/jinja/repr.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/text/jinja/builtin.h"
#include "core/text/jinja/mutable_values.h"
#include "core/text/jinja/unicode.h"

namespace kvasir::jinja {
namespace {

void append_quoted(TextBuilder& out, const Text& text) {
  const bool has_single = text.bytes.find('\'') != std::string::npos;
  const char quote = has_single && text.bytes.find('"') == std::string::npos ? '"' : '\'';
  OriginCursor origin(text);
  out.append_markup(std::string_view(&quote, 1));
  if (!out.context().step(static_cast<int64_t>(text.bytes.size() / 2))) return;
  for (size_t at = 0; at < text.bytes.size();) {
    const Character c = character_at(text.bytes, at);
    std::string escaped;
    switch (c.code) {
      case '\n':
        escaped = "\\n";
        break;
      case '\r':
        escaped = "\\r";
        break;
      case '\t':
        escaped = "\\t";
        break;
      case '\\':
        escaped = "\\\\";
        break;
      default:
        if (c.code == quote) {
          escaped = {'\\', quote};
        } else if (!is_printable(c.code)) {
          escaped = c.code < 0x100     ? fmt::format("\\x{:02x}", c.code)
                    : c.code < 0x10000 ? fmt::format("\\u{:04x}", c.code)
                                       : fmt::format("\\U{:08x}", c.code);
        }
    }
    if (escaped.empty()) {
      out.append(text, at, at + c.n_bytes);
    } else {
      out.append(escaped, origin.is_content(at));
    }
    at += c.n_bytes;
  }
  out.append_markup(std::string_view(&quote, 1));
}

void append_items(TextBuilder& out, const std::vector<Value>& items, const char* open,
                  const char* close) {
  out.append_markup(open);
  for (size_t i = 0; i < items.size() && !out.context().failed(); ++i) {
    if (i > 0) out.append_markup(", ");
    append_repr(out, items[i]);
  }
  out.append_markup(close);
}

template <class Items>
void append_pairs(TextBuilder& out, const Items& items) {
  out.append_markup("{");
  bool is_first = true;
  for (const auto& [key, value] : items) {
    if (out.context().failed()) return;
    if (!is_first) out.append_markup(", ");
    is_first = false;
    append_repr(out, key);
    out.append_markup(": ");
    append_repr(out, value);
  }
  out.append_markup("}");
}

void append_sequence(TextBuilder& out, const Value& value) {
  const Sequence& sequence = value.sequence();
  if (value.is(Type::list)) {
    append_items(out, sequence.items, "[", "]");
  } else if (value.is(Type::tuple)) {
    append_items(out, sequence.items, "(", sequence.items.size() == 1 ? ",)" : ")");
  } else if (value.is(Type::generator)) {
    out.append_markup(fmt::format("<{} object>", sequence.type_name));
  } else {
    out.append_markup(sequence.type_name);
    append_items(out, sequence.items, "([", "])");
  }
}

/// Ranges, functions and the like.
void append_thing(TextBuilder& out, const Value& value) {
  switch (value.type()) {
    case Type::range: {
      const Range& r = value.range();
      out.append_markup(r.step == 1 ? fmt::format("range({}, {})", r.start, r.stop)
                                    : fmt::format("range({}, {}, {})", r.start, r.stop, r.step));
      break;
    }
    case Type::function:
      out.append_markup(fmt::format("<function {}>", value.function()->name));
      break;
    case Type::method:
      out.append_markup(fmt::format("<built-in method {} of {} object>",
                                    value.method().builtin->name, type_name(value.method().self)));
      break;
    case Type::space:
      out.append_markup("<Namespace ");
      append_pairs(out, value.space()->items);
      out.append_markup(">");
      break;
    case Type::macro:
      out.append_markup("<Macro>");
      break;
    case Type::loop:
      out.append_markup(
          fmt::format("<LoopContext {}/{}>", value.loop()->index + 1, value.loop()->items.size()));
      break;
    case Type::cycler:
      out.append_markup("<Cycler>");
      break;
    case Type::joiner:
      out.append_markup("<Joiner>");
      break;
    default:
      break;
  }
}

}  // namespace

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<size_t>(end.ptr - buffer));
  // d.ddde[+-]xx: digits and exponent, laid out plainly from 1e-4 up to below 1e16.
  const size_t mark = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + mark + (text[mark + 1] == '+' ? 2 : 1), text.data() + text.size(),
                  exponent);
  const std::string sign = text[0] == '-' ? "-" : "";
  std::string digits;
  for (const char c : text.substr(0, mark)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  if (exponent < -4 || exponent >= 16) {
    std::string mantissa = digits.substr(0, 1);
    if (digits.size() > 1) mantissa += "." + digits.substr(1);
    return fmt::format("{}{}e{}{:02}", sign, mantissa, exponent < 0 ? '-' : '+',
                       std::abs(exponent));
  }
  if (exponent < 0) {
    return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  }
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

void append_repr(TextBuilder& out, const Value& value) {
  Context& context = out.context();
  const Nested nested(context);
  if (!nested || !context.step()) return;
  switch (value.type()) {
    case Type::missing:
      break;
    case Type::undefined:
      out.append_markup("Undefined");
      break;
    case Type::none:
      out.append_markup("None");
      break;
    case Type::boolean:
      out.append_markup(value.as_integer() != 0 ? "True" : "False");
      break;
    case Type::integer:
      out.append_markup(fmt::format("{}", value.as_integer()));
      break;
    case Type::real:
      out.append_markup(float_repr(value.as_real()));
      break;
    case Type::string:
      append_quoted(out, value.text());
      break;
    case Type::list:
    case Type::tuple:
    case Type::view:
    case Type::generator:
      append_sequence(out, value);
      break;
    case Type::dict:
      append_pairs(out, value.dict().items);
      break;
    default:
      append_thing(out, value);
  }
}

void append_str(TextBuilder& out, const Value& value) {
  if (out.context().failed() || value.is_undefined()) return;
  if (value.is(Type::string)) {
    out.append(value.text());
  } else {
    append_repr(out, value);
  }
}

Value str_of(Context& context, const Value& value) {
  if (value.is(Type::string)) return value;
  TextBuilder out(context);
  append_str(out, value);
  return make_string(out);
}

std::string shortened(std::string_view text) {
  constexpr size_t kMost = 60;
  if (text.size() <= kMost) return std::string(text);
  return std::string(text.substr(0, previous_character(text, kMost + 1))) + "...";
}

std::string short_repr(Context& context, const Value& value) {
  if (value.has_items() || value.is(Type::dict)) return type_name(value);
  TextBuilder out(context);
  append_repr(out, value);
  return shortened(out.text().bytes);
}

const char* type_name(const Value& value) {
  switch (value.type()) {
    case Type::missing:
    case Type::undefined:
      return "Undefined";
    case Type::none:
      return "NoneType";
    case Type::boolean:
      return "bool";
    case Type::integer:
      return "int";
    case Type::real:
      return "float";
    case Type::string:
      return "str";
    case Type::list:
      return "list";
    case Type::tuple:
      return "tuple";
    case Type::dict:
      return "dict";
    case Type::range:
      return "range";
    case Type::view:
    case Type::generator:
      return value.sequence().type_name;
    case Type::function:
      return "function";
    case Type::method:
      return "builtin_function_or_method";
    case Type::space:
      return "Namespace";
    case Type::macro:
      return "Macro";
    case Type::loop:
      return "LoopContext";
    case Type::cycler:
      return "Cycler";
    case Type::joiner:
      return "Joiner";
  }
  return "object";
}

}  // namespace kvasir::jinja
