// Filters that make strings and numbers.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/text/jinja/builtin.h"
#include "core/text/jinja/evaluator.h"
#include "core/text/jinja/format.h"
#include "core/text/jinja/operators.h"
#include "core/text/jinja/repr.h"
#include "core/text/jinja/strings.h"
#include "core/text/jinja/unicode.h"

namespace kvasir::jinja {
namespace {

template <Case kCase>
Value cased(Evaluator& e, const Value& v, Arguments&) {
  const Value text = str_of(e.context(), v);
  return e.context().failed() ? Value() : change_case(e.context(), text.text(), kCase);
}

Value string_filter(Evaluator& e, const Value& v, Arguments&) {
  return str_of(e.context(), v);
}

Value trim(Evaluator& e, const Value& v, Arguments& a) {
  const Value text = str_of(e.context(), v);
  if (e.context().failed()) return {};
  const bool given = a.has(0) && !a[0].is(Type::none);
  const Text* characters = given ? text_argument(e.context(), a[0], "trim") : nullptr;
  return e.context().failed() ? Value() : strip(e.context(), text.text(), Ends::both, characters);
}

Value replace_filter(Evaluator& e, const Value& v, Arguments& a) {
  Context& context = e.context();
  const Value text = str_of(context, v), old = str_of(context, a[0]), with = str_of(context, a[1]);
  const int64_t count = a.has(2) ? integer_argument(context, a[2], -1, "replace") : -1;
  if (context.failed()) return {};
  return replace(context, text.text(), old.text(), with.text(), count);
}

Value escape(Evaluator& e, const Value& v, Arguments&) {
  const Value shown = str_of(e.context(), v);
  if (e.context().failed()) return {};
  const Text& text = shown.text();
  TextBuilder out(e.context());
  OriginCursor origin(text);
  for (size_t at = 0; at < text.bytes.size() && e.context().work(64); ++at) {
    const char c = text.bytes[at];
    const char* named = c == '&'    ? "&amp;"
                        : c == '<'  ? "&lt;"
                        : c == '>'  ? "&gt;"
                        : c == '\'' ? "&#39;"
                        : c == '"'  ? "&#34;"
                                    : nullptr;
    if (named != nullptr) {
      out.append(named, origin.is_content(at));
    } else {
      out.append(text, at, at + 1);
    }
  }
  return make_string(out);
}

Value center_filter(Evaluator& e, const Value& v, Arguments& a) {
  const Value text = str_of(e.context(), v);
  if (e.context().failed()) return {};
  Arguments width;
  width.positional = {a.has(0) ? a[0] : Value::integer(80), Value::missing()};
  return find_method(text, "center").builtin->function(e, text, width);
}

Value indent(Evaluator& e, const Value& v, Arguments& a) {
  Context& context = e.context();
  const Text* text = text_argument(context, v, "indent");
  if (text == nullptr) return {};
  TextBuilder spaces(context);
  if (a.has(0) && a[0].is(Type::string)) {
    spaces.append(a[0].text());
  } else {
    const int64_t width = a.has(0) ? integer_argument(context, a[0], 4, "indent") : 4;
    for (int64_t i = 0; i < width && context.step(); ++i) spaces.append_markup(" ");
  }
  const bool first = a.has(1) && truth(a[1]), blank = a.has(2) && truth(a[2]);
  TextBuilder longer(context);  // as jinja2 does: a last line end keeps an empty last line
  longer.append(*text);
  longer.append_markup("\n");
  const Value lines = split_lines(context, longer.text(), false);
  if (context.failed()) return {};
  TextBuilder out(context);
  const auto& items = lines.sequence().items;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.append_markup("\n");
    const bool indented = i == 0 ? first : blank || !items[i].bytes().empty();
    if (indented) out.append(spaces.text());
    out.append(items[i].text());
  }
  return make_string(out);
}

Value truncate(Evaluator& e, const Value& v, Arguments& a) {
  Context& context = e.context();
  const int64_t length = a.has(0) ? integer_argument(context, a[0], 255, "truncate") : 255;
  const bool kill_words = a.has(1) && truth(a[1]);
  const Value end = a.has(2) ? str_of(context, a[2]) : make_markup(context, "...");
  const int64_t leeway = a.has(3) ? integer_argument(context, a[3], 5, "truncate") : 5;
  if (context.failed()) return {};
  const int64_t kept = length - length_of(end);
  if (kept < 0 || leeway < 0) {
    context.fail("truncate to {} characters cannot hold its end of {}", length, length_of(end));
    return {};
  }
  if (const int64_t size = length_of(v); size >= 0 && size <= length + leeway) return v;
  const Text* text = text_argument(context, v, "truncate");
  if (text == nullptr) return {};
  size_t cut = offset_of_character(text->bytes, static_cast<size_t>(kept));
  if (!kill_words) {
    const size_t space = text->bytes.substr(0, cut).rfind(' ');
    if (space != std::string::npos) cut = space;
  }
  TextBuilder out(context);
  out.append(*text, 0, cut);
  out.append(end.text());
  return make_string(out);
}

Value wordcount(Evaluator& e, const Value& v, Arguments&) {
  const Value text = str_of(e.context(), v);
  if (e.context().failed() || !e.context().step(static_cast<int64_t>(text.bytes().size() / 16)))
    return {};
  int64_t n = 0;
  bool in_word = false;
  for (size_t at = 0; at < text.bytes().size();) {
    const Character c = character_at(text.bytes(), at);
    if (is_word(c.code) && !in_word) ++n;
    in_word = is_word(c.code);
    at += c.n_bytes;
  }
  return Value::integer(n);
}

Value format_filter(Evaluator& e, const Value& v, Arguments& a) {
  Context& context = e.context();
  const Value text = str_of(context, v);
  if (!a.positional.empty() && !a.keywords.empty()) {
    context.fail("filter 'format' takes positional or keyword arguments, not both");
  }
  if (context.failed()) return {};
  if (a.keywords.empty()) {
    return format_percent(context, text,
                          make_sequence(&context, Type::tuple, std::move(a.positional)));
  }
  DictBuilder values(context);
  for (const auto& [name, value] : a.keywords) values.set(name, value);
  const Value dict = values.finish();
  return context.failed() ? Value() : format_percent(context, text, dict);
}

void append_url_quoted(TextBuilder& out, const Text& text, bool for_query) {
  OriginCursor origin(text);
  for (size_t at = 0; at < text.bytes.size() && out.context().step(); ++at) {
    const char c = text.bytes[at];
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !for_query);
    if (plain) {
      out.append(text, at, at + 1);
    } else if (c == ' ' && for_query) {
      out.append("+", origin.is_content(at));
    } else {
      out.append(fmt::format("%{:02X}", static_cast<unsigned char>(c)), origin.is_content(at));
    }
  }
}

Value urlencode(Evaluator& e, const Value& v, Arguments&) {
  Context& context = e.context();
  TextBuilder out(context);
  if (v.is(Type::string) || !Evaluator::is_iterable(v)) {
    const Value text = str_of(context, v);
    if (!context.failed()) append_url_quoted(out, text.text(), false);
    return make_string(out);
  }
  std::vector<Value> keys;
  if (!e.iterate(v, keys)) return {};
  for (size_t i = 0; i < keys.size(); ++i) {
    Value key = keys[i], value;
    if (v.is(Type::dict)) {
      value = v.dict().items[i].second;
    } else {
      std::vector<Value> pair;
      if (!e.iterate(keys[i], pair)) return {};
      if (pair.size() != 2) context.fail("urlencode needs pairs");
      if (context.failed()) return {};
      key = pair[0];
      value = pair[1];
    }
    const Value name = str_of(context, key), text = str_of(context, value);
    if (context.failed()) return {};
    if (i > 0) out.append_markup("&");
    append_url_quoted(out, name.text(), true);
    out.append_markup("=");
    append_url_quoted(out, text.text(), true);
  }
  return make_string(out);
}

Value tojson(Evaluator& e, const Value& v, Arguments& a) {
  Context& context = e.context();
  JsonStyle style;
  style.ensure_ascii = a.has(0) && truth(a[0]);
  style.indented = a.has(1) && !a[1].is(Type::none);
  if (style.indented && a[1].is(Type::string)) {
    style.indent = std::string(a[1].bytes().substr(0, 1000));
  } else if (style.indented) {
    const int64_t width = integer_argument(context, a[1], 0, "tojson");
    style.indent = std::string(static_cast<size_t>(std::clamp<int64_t>(width, 0, 1000)), ' ');
  }
  style.item_separator = style.indented ? "," : ", ";
  if (a.has(2) && !a[2].is(Type::none)) {
    std::vector<Value> separators;
    if (!e.iterate(a[2], separators)) return {};
    if (separators.size() != 2 || !separators[0].is(Type::string) ||
        !separators[1].is(Type::string)) {
      context.fail("the separators of tojson must be two strings");
      return {};
    }
    style.item_separator = std::string(separators[0].bytes());
    style.key_separator = std::string(separators[1].bytes());
  }
  style.sort_keys = a.has(3) && truth(a[3]);
  TextBuilder out(context);
  append_json(out, v, style);
  return make_string(out);
}

constexpr Builtin kStringFilters[] = {
    {"capitalize", cased<Case::capitalize>},
    {"center", center_filter, {"width"}},
    {"e", escape},
    {"escape", escape},
    {"forceescape", escape},
    {"format", format_filter, {}, 0, true},
    {"indent", indent, {"width", "first", "blank"}},
    {"lower", cased<Case::lower>},
    {"replace", replace_filter, {"old", "new", "count"}, 2},
    {"safe", string_filter},
    {"string", string_filter},
    {"title", cased<Case::jinja_title>},
    {"tojson", tojson, {"ensure_ascii", "indent", "separators", "sort_keys"}},
    {"trim", trim, {"chars"}},
    {"truncate", truncate, {"length", "killwords", "end", "leeway"}},
    {"upper", cased<Case::upper>},
    {"urlencode", urlencode},
    {"wordcount", wordcount},
};

}  // namespace

std::span<const Builtin> string_filters() {
  return kStringFilters;
}

const Builtin* find_filter(std::string_view name) {
  for (const auto table : {string_filters(), sequence_filters(), other_filters()}) {
    if (const Builtin* found = find_builtin(table, name)) return found;
  }
  return nullptr;
}

}  // namespace kvasir::jinja
