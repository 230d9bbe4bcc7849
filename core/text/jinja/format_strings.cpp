// Strings with places for values: % and str.format.
#include <algorithm>
#include <cmath>

#include "core/text/jinja/evaluator.h"
#include "core/text/jinja/format.h"
#include "core/text/jinja/operators.h"
#include "core/text/jinja/repr.h"
#include "core/text/jinja/strings.h"
#include "core/text/jinja/unicode.h"

namespace kvasir::jinja {
namespace {

/// One run of `format % values`.
class PercentFormat {
 public:
  PercentFormat(Context& context, const Value& format, const Value& values)
      : context_(context), text_(format.text()), values_(values), out_(context) {}
  Value run();

 private:
  void conversion();
  Value next_value();
  Value keyed_value();
  int64_t read_star_or_number();
  void append(const Value& value, FormatSpec& spec, char type);
  char peek() const { return at_ < text_.bytes.size() ? text_.bytes[at_] : '\0'; }

  Context& context_;
  const Text& text_;
  const Value& values_;
  TextBuilder out_;
  size_t at_ = 0;
  size_t used_ = 0;
};

Value PercentFormat::next_value() {
  if (values_.is(Type::tuple)) {
    const auto& items = values_.sequence().items;
    if (used_ < items.size()) return items[used_++];
  } else if (used_++ == 0) {
    return values_;
  }
  context_.fail("not enough arguments for format string");
  return {};
}

/// %(name)s
Value PercentFormat::keyed_value() {
  const size_t end = text_.bytes.find(')', at_);
  if (end == std::string::npos || !values_.is(Type::dict)) {
    context_.fail("{}",
                  end == std::string::npos ? "incomplete format key" : "format requires a mapping");
    return {};
  }
  const std::string key = text_.bytes.substr(at_ + 1, end - at_ - 1);
  at_ = end + 1;
  used_ = 1;
  const Value* found = lookup(context_, values_.dict(), make_markup(context_, key));
  if (found == nullptr) context_.fail("the values of % have no key '{}'", shortened(key));
  return found == nullptr ? Value() : *found;
}

int64_t PercentFormat::read_star_or_number() {
  if (peek() == '*') {
    ++at_;
    const Value number = next_value();
    if (context_.failed()) return 0;
    return std::clamp<int64_t>(integer_argument(context_, number, 0, "%"), -INT32_MAX, INT32_MAX);
  }
  int64_t number = 0;
  while (peek() >= '0' && peek() <= '9' && number < INT32_MAX)
    number = number * 10 + (text_.bytes[at_++] - '0');
  return number;
}

void PercentFormat::append(const Value& value, FormatSpec& spec, char type) {
  const bool is_integer =
      type == 'd' || type == 'i' || type == 'u' || type == 'x' || type == 'X' || type == 'o';
  const bool is_real = std::string_view("eEfFgG").find(type) != std::string_view::npos;
  if (type == 's' || type == 'r' || type == 'a') {
    TextBuilder shown(context_);
    type == 's' ? append_str(shown, value) : append_repr(shown, value);
    if (spec.align == 0 || spec.align == '=') spec.align = '>';
    spec.fill = " ";
    append_formatted(out_, make_string(shown), spec);
  } else if (is_real && value.is_number()) {
    spec.type = type;
    append_formatted(out_, value, spec);
  } else if (is_integer && value.is_number()) {
    spec.type = type == 'i' || type == 'u' ? 'd' : type;
    if (value.is(Type::real)) {
      const double whole = std::trunc(value.as_real());
      if (type != 'd' && type != 'i' && type != 'u') context_.fail("%{} needs an integer", type);
      if (!(std::abs(whole) < 9.2e18)) context_.fail("a number is too large for %{}", type);
      if (context_.failed()) return;
      append_formatted(out_, Value::integer(static_cast<int64_t>(whole)), spec);
    } else {
      append_formatted(out_, Value::integer(value.as_integer()), spec);
    }
  } else if (type == 'c' && value.is(Type::string) && value.string().n_characters == 1) {
    append_formatted(out_, value, spec);
  } else {
    context_.fail("%{} does not fit a value of type '{}'", type, type_name(value));
  }
}

void PercentFormat::conversion() {
  if (peek() == '%') {
    out_.append(text_, at_, at_ + 1);
    ++at_;
    return;
  }
  Value value = Value::missing();
  if (peek() == '(') value = keyed_value();
  FormatSpec spec;
  for (bool more = true; more;) {
    switch (peek()) {
      case '-':
        spec.align = '<';
        break;
      case '+':
        spec.sign = '+';
        break;
      case ' ':
        spec.sign = spec.sign == '+' ? '+' : ' ';
        break;
      case '#':
        spec.alternate = true;
        break;
      case '0':
        if (spec.align == 0) spec.align = '=';
        break;
      default:
        more = false;
    }
    if (more) ++at_;
  }
  if (spec.align == '=') spec.fill = "0";
  spec.width = read_star_or_number();
  if (spec.width < 0) {
    spec.width = -spec.width;
    spec.align = '<';
    spec.fill = " ";
  }
  if (peek() == '.') {
    ++at_;
    spec.precision = static_cast<int>(std::max<int64_t>(read_star_or_number(), 0));
  }
  while (peek() == 'h' || peek() == 'l' || peek() == 'L') ++at_;
  if (at_ >= text_.bytes.size()) context_.fail("incomplete format");
  if (context_.failed()) return;
  const char type = text_.bytes[at_];
  if (std::string_view("diouxXeEfFgGcrsa").find(type) == std::string_view::npos) {
    context_.fail("unsupported format character in '{}'", shortened(text_.bytes));
    return;
  }
  ++at_;
  if (value.is(Type::missing)) value = next_value();
  if (!context_.failed()) append(value, spec, type);
}

Value PercentFormat::run() {
  while (!context_.failed()) {
    const size_t percent = std::min(text_.bytes.find('%', at_), text_.bytes.size());
    out_.append(text_, at_, percent);
    at_ = percent + 1;
    if (percent == text_.bytes.size() || !context_.step()) break;
    conversion();
  }
  const size_t given = values_.is(Type::tuple) ? values_.sequence().items.size() : 1;
  // Whatever Python can index may have parts left over.
  const bool may_be_left = values_.is(Type::dict) || values_.is(Type::list) ||
                           values_.is(Type::range) || values_.is_undefined();
  if (!may_be_left && used_ < given) {
    context_.fail("not all arguments converted during string formatting");
  }
  return make_string(out_);
}

/// One run of format.format(...).
class BraceFormat {
 public:
  BraceFormat(Evaluator& evaluator, const Arguments& arguments)
      : evaluator_(evaluator), context_(evaluator.context()), arguments_(arguments) {}
  void run(TextBuilder& out, const Text& text, int depth);

 private:
  void field(TextBuilder& out, const Text& text, size_t begin, size_t end, int depth);
  Value find(std::string_view name);
  Value root(std::string_view name);

  Evaluator& evaluator_;
  Context& context_;
  const Arguments& arguments_;
  size_t next_ = 0;
};

Value BraceFormat::root(std::string_view name) {
  const auto number =
      name.empty() ? static_cast<int64_t>(next_++) : read_integer(name, 10).value_or(-1);
  if (number >= 0) {
    if (static_cast<size_t>(number) < arguments_.positional.size()) {
      return arguments_.positional[static_cast<size_t>(number)];
    }
    context_.fail("format() has no argument number {}", number);
    return {};
  }
  for (const auto& [key, value] : arguments_.keywords) {
    if (key.bytes() == name) return value;
  }
  context_.fail("format() has no argument '{}'", shortened(name));
  return {};
}

/// name.attribute[item]...
Value BraceFormat::find(std::string_view name) {
  size_t at = std::min(name.find_first_of(".["), name.size());
  Value value = root(name.substr(0, at));
  while (at < name.size() && !context_.failed()) {
    const bool is_item = name[at] == '[';
    const size_t end =
        std::min(is_item ? name.find(']', at) : name.find_first_of(".[", at + 1), name.size());
    const std::string_view part = name.substr(at + 1, end - at - 1);
    const auto index = read_integer(part, 10);
    if (!is_item) {
      value = evaluator_.get_attribute(value, make_markup(context_, part));
    } else {
      value =
          evaluator_.get_item(value, index ? Value::integer(*index) : make_markup(context_, part));
    }
    at = is_item ? std::min(end + 1, name.size()) : end;
    if (is_item && at < name.size() && name[at] != '.' && name[at] != '[') {
      context_.fail("only '.' or '[' may follow ']' in a format field");
    }
  }
  return value;
}

void BraceFormat::field(TextBuilder& out, const Text& text, size_t begin, size_t end, int depth) {
  const std::string_view inside = std::string_view(text.bytes).substr(begin, end - begin);
  const size_t colon = std::min(inside.find(':'), inside.size());
  const size_t mark = std::min(inside.find('!'), colon);
  Value value = find(inside.substr(0, mark));
  if (context_.failed()) return;
  if (mark < colon) {
    const std::string_view conversion = inside.substr(mark + 1, colon - mark - 1);
    TextBuilder shown(context_);
    if (conversion == "r" || conversion == "a") {
      append_repr(shown, value);
    } else if (conversion == "s") {
      append_str(shown, value);
    } else {
      context_.fail("unknown conversion '{}' in a format field", shortened(conversion));
    }
    value = make_string(shown);
  }
  TextBuilder spec(context_);
  if (colon < inside.size()) {
    Text nested{std::string(inside.substr(colon + 1)), {}};
    run(spec, nested, depth + 1);
  }
  if (context_.failed()) return;
  append_formatted(out, value, read_spec(context_, spec.text().bytes));
}

void BraceFormat::run(TextBuilder& out, const Text& text, int depth) {
  const std::string_view bytes = text.bytes;
  if (depth > 2) {
    context_.fail("format fields are nested too deeply");
    return;
  }
  for (size_t at = 0; at < bytes.size() && context_.step();) {
    const size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
    out.append(text, at, brace);
    if (brace == bytes.size()) return;
    if (brace + 1 < bytes.size() && bytes[brace + 1] == bytes[brace]) {
      out.append(text, brace, brace + 1);
      at = brace + 2;
      continue;
    }
    size_t end = brace + 1;
    for (int open = 1; end < bytes.size(); ++end) {
      if (bytes[end] == '{') ++open;
      if (bytes[end] == '}' && --open == 0) break;
    }
    if (bytes[brace] == '}' || end >= bytes.size()) {
      context_.fail("single '{}' in a format string", bytes[brace]);
      return;
    }
    field(out, text, brace + 1, end, depth);
    at = end + 1;
  }
}

}  // namespace

Value format_percent(Context& context, const Value& format, const Value& values) {
  return PercentFormat(context, format, values).run();
}

Value format_braces(Evaluator& evaluator, const Value& self, Arguments& arguments) {
  TextBuilder out(evaluator.context());
  BraceFormat(evaluator, arguments).run(out, self.text(), 0);
  return make_string(out);
}

}  // namespace kvasir::jinja
