// json.dumps, with the settings Hugging Face's tojson filter allows.
#include <algorithm>
#include <cmath>

#include "core/text/jinja/mutable_values.h"
#include "core/text/jinja/repr.h"
#include "core/text/jinja/unicode.h"

namespace kvasir::jinja {
namespace {

class JsonWriter {
 public:
  JsonWriter(TextBuilder& out, const JsonStyle& style) : out_(out), style_(style) {}
  void write(const Value& value);

 private:
  void write_string(const Text& text);
  void write_list(const std::vector<Value>& items);
  void write_dict(const Dict& dict);
  void write_key(const Value& key);
  void new_line();
  std::string escaped(int32_t code) const;

  TextBuilder& out_;
  const JsonStyle& style_;
  int level_ = 0;
};

std::string JsonWriter::escaped(int32_t code) const {
  switch (code) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\f':
      return "\\f";
    case '\b':
      return "\\b";
    default:
      break;
  }
  if (code < 0x20) return fmt::format("\\u{:04x}", code);
  if (!style_.ensure_ascii || code < 0x7F) return {};
  if (code < 0x10000) return fmt::format("\\u{:04x}", code);
  const int32_t rest = code - 0x10000;
  return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
}

void JsonWriter::write_string(const Text& text) {
  OriginCursor origin(text);
  out_.append_markup("\"");
  if (!out_.context().step(static_cast<int64_t>(text.bytes.size() / 4))) return;
  size_t plain_from = 0;
  for (size_t at = 0; at < text.bytes.size();) {
    const Character c = character_at(text.bytes, at);
    if (const std::string escape = escaped(c.code); !escape.empty()) {
      out_.append(text, plain_from, at);
      out_.append(escape, origin.is_content(at));
      plain_from = at + c.n_bytes;
    }
    at += c.n_bytes;
  }
  out_.append(text, plain_from, text.bytes.size());
  out_.append_markup("\"");
}

void JsonWriter::new_line() {
  if (!style_.indented) return;
  out_.append_markup("\n");
  for (int i = 0; i < level_; ++i) out_.append_markup(style_.indent);
}

void JsonWriter::write_list(const std::vector<Value>& items) {
  if (items.empty()) return out_.append_markup("[]");
  out_.append_markup("[");
  ++level_;
  for (size_t i = 0; i < items.size() && !out_.context().failed(); ++i) {
    if (i > 0) out_.append_markup(style_.item_separator);
    new_line();
    write(items[i]);
  }
  --level_;
  new_line();
  out_.append_markup("]");
}

void JsonWriter::write_key(const Value& key) {
  if (key.is(Type::string)) return write_string(key.text());
  if (!key.is_number() && !key.is(Type::none)) {
    out_.context().fail("keys must be str, int, float, bool or None, not {}", type_name(key));
    return;
  }
  out_.append_markup("\"");
  write(key);
  out_.append_markup("\"");
}

void JsonWriter::write_dict(const Dict& dict) {
  if (dict.items.empty()) return out_.append_markup("{}");
  std::vector<const std::pair<Value, Value>*> items;
  for (const auto& item : dict.items) items.push_back(&item);
  if (style_.sort_keys) {
    Context& context = out_.context();
    std::stable_sort(items.begin(), items.end(), [&](const auto* a, const auto* b) {
      return compare(context, a->first, b->first, "<") == -1;
    });
  }
  out_.append_markup("{");
  ++level_;
  bool is_first = true;
  for (const auto* item : items) {
    if (out_.context().failed()) return;
    if (!is_first) out_.append_markup(style_.item_separator);
    is_first = false;
    new_line();
    write_key(item->first);
    out_.append_markup(style_.key_separator);
    write(item->second);
  }
  --level_;
  new_line();
  out_.append_markup("}");
}

void JsonWriter::write(const Value& value) {
  Context& context = out_.context();
  const Nested nested(context);
  if (!nested || !context.step()) return;
  switch (value.type()) {
    case Type::none:
      return out_.append_markup("null");
    case Type::boolean:
      return out_.append_markup(value.as_integer() != 0 ? "true" : "false");
    case Type::integer:
      return out_.append_markup(fmt::format("{}", value.as_integer()));
    case Type::real: {
      const double d = value.as_real();
      if (std::isnan(d)) return out_.append_markup("NaN");
      if (std::isinf(d)) return out_.append_markup(d < 0 ? "-Infinity" : "Infinity");
      return out_.append_markup(float_repr(d));
    }
    case Type::string:
      return write_string(value.text());
    case Type::list:
    case Type::tuple:
      return write_list(value.sequence().items);
    case Type::dict:
      return write_dict(value.dict());
    default:
      context.fail("a value of type '{}' cannot be written as JSON", type_name(value));
  }
}

}  // namespace

void append_json(TextBuilder& out, const Value& value, const JsonStyle& style) {
  JsonWriter(out, style).write(value);
}

}  // namespace kvasir::jinja
