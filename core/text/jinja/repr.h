// Values as text: str(), repr(), JSON.
#pragma once

#include <string>
#include <string_view>

#include "core/text/jinja/value.h"

namespace kvasir::jinja {

/// str(value): what printing a value appends.
void append_str(TextBuilder& out, const Value& value);
/// repr(value): how a value looks inside a printed list.
void append_repr(TextBuilder& out, const Value& value);
/// str(value) as a value; strings are themselves.
Value str_of(Context& context, const Value& value);

/// How json.dumps is asked to write.
struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool indented = false;
  std::string indent;          ///< one level's
  std::string item_separator;  ///< ", " without indent, "," with
  std::string key_separator = ": ";
};
void append_json(TextBuilder& out, const Value& value, const JsonStyle& style);

/// repr(double), and str(double): the shortest digits that read back, as Python lays them out.
std::string float_repr(double value);

/// For messages: at most 60 bytes of a text; of a value's repr.
std::string shortened(std::string_view text);
std::string short_repr(Context& context, const Value& value);

}  // namespace kvasir::jinja
