// Python's str operations on texts that remember their origin.
#pragma once

#include <cstddef>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/jinja/value.h"

namespace kvasir::jinja {

/// Which ends strip() works on.
enum class Ends { both, left, right };
/// Without `characters`: whitespace.
Value strip(Context& context, const Text& text, Ends ends, const Text* characters);

enum class Case { upper, lower, title, capitalize, swap, jinja_title };
Value change_case(Context& context, const Text& text, Case to);

/// str.isupper (or str.islower): every cased character is, and there is one.
bool has_only_case(Context& context, const Text& text, bool upper);

/// At most `count` replacements, all when negative.
Value replace(Context& context, const Text& text, const Text& old, const Text& with, int64_t count);

/// Pieces between separators (whitespace when there is none), at most `most` cuts unless negative.
Value split(Context& context, const Text& text, const Text* separator, int64_t most);
Value split_from_right(Context& context, const Text& text, const Text* separator, int64_t most);
Value split_lines(Context& context, const Text& text, bool keep_ends);
Value join(Context& context, const Text& separator, const std::vector<Value>& items);

/// As int(text, base) and float(text) read them.
std::optional<int64_t> read_integer(std::string_view text, int base);
std::optional<double> read_real(std::string_view text);

/// strftime in English; an error names a conversion that is not known.
std::string format_time(Context& context, std::string_view format, const std::tm& time);

/// A text argument, or an error naming the call.
const Text* text_argument(Context& context, const Value& value, std::string_view call);
/// An integer argument; `otherwise` when it was not given or is none.
int64_t integer_argument(Context& context, const Value& value, int64_t otherwise,
                         std::string_view call);

}  // namespace kvasir::jinja
