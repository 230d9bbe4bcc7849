// Methods of strings, and which attributes the sandbox hides.
#include <algorithm>
#include <array>

#include "core/text/jinja/builtin.h"
#include "core/text/jinja/evaluator.h"
#include "core/text/jinja/find_bytes.h"
#include "core/text/jinja/format.h"
#include "core/text/jinja/operators.h"
#include "core/text/jinja/strings.h"
#include "core/text/jinja/unicode.h"

namespace kvasir::jinja {
namespace {

Value strip_method(Evaluator& e, const Value& self, Arguments& a, Ends ends) {
  const Text* characters = nullptr;
  if (a.has(0) && !a[0].is(Type::none)) {
    characters = text_argument(e.context(), a[0], "strip");
    if (characters == nullptr) return {};
  }
  return strip(e.context(), self.text(), ends, characters);
}
Value strip_both(Evaluator& e, const Value& self, Arguments& a) {
  return strip_method(e, self, a, Ends::both);
}
Value strip_left(Evaluator& e, const Value& self, Arguments& a) {
  return strip_method(e, self, a, Ends::left);
}
Value strip_right(Evaluator& e, const Value& self, Arguments& a) {
  return strip_method(e, self, a, Ends::right);
}

template <Case kCase>
Value case_method(Evaluator& e, const Value& self, Arguments&) {
  return change_case(e.context(), self.text(), kCase);
}

using SplitFunction = Value (*)(Context&, const Text&, const Text*, int64_t);
Value split_with(Evaluator& e, const Value& self, Arguments& a, SplitFunction function) {
  const Text* separator = nullptr;
  if (a.has(0) && !a[0].is(Type::none)) {
    separator = text_argument(e.context(), a[0], "split");
    if (separator == nullptr) return {};
  }
  const int64_t most = a.has(1) ? integer_argument(e.context(), a[1], -1, "split") : -1;
  return function(e.context(), self.text(), separator, most);
}
Value split_method(Evaluator& e, const Value& self, Arguments& a) {
  return split_with(e, self, a, split);
}
Value rsplit_method(Evaluator& e, const Value& self, Arguments& a) {
  return split_with(e, self, a, split_from_right);
}
Value splitlines_method(Evaluator& e, const Value& self, Arguments& a) {
  return split_lines(e.context(), self.text(), a.has(0) && truth(a[0]));
}

Value replace_method(Evaluator& e, const Value& self, Arguments& a) {
  const Text* old = text_argument(e.context(), a[0], "replace");
  const Text* with = text_argument(e.context(), a[1], "replace");
  if (old == nullptr || with == nullptr) return {};
  const int64_t count = a.has(2) ? integer_argument(e.context(), a[2], -1, "replace") : -1;
  return replace(e.context(), self.text(), *old, *with, count);
}

Value join_method(Evaluator& e, const Value& self, Arguments& a) {
  std::vector<Value> items;
  if (!e.iterate(a[0], items)) return {};
  for (const Value& item : items) {
    if (item.is(Type::string)) continue;
    e.context().fail("'join' expects strings, found '{}'", type_name(item));
    return {};
  }
  return join(e.context(), self.text(), items);
}

/// Bytes [begin, end) that the optional start and end arguments (in characters) select; false when
/// start lies behind the end of the text.
bool selected(Evaluator& e, const Value& self, Arguments& a, size_t first, ByteRange& range) {
  const auto size = static_cast<int64_t>(self.string().n_characters);
  const auto bound = [&](size_t i, int64_t otherwise) {
    const int64_t v = a.has(i) ? integer_argument(e.context(), a[i], otherwise, "find") : otherwise;
    return v < 0 ? std::max<int64_t>(v + size, 0) : v;
  };
  const int64_t begin = bound(first, 0);
  const int64_t end = std::min(bound(first + 1, size), size);
  e.context().work(self.bytes().size());
  if (begin > end) return false;
  range.begin = offset_of_character(self.bytes(), static_cast<size_t>(begin));
  range.end = offset_of_character(self.bytes(), static_cast<size_t>(end));
  return true;
}

int64_t find_in(Evaluator& e, const Value& self, Arguments& a, bool from_right) {
  const Text* what = text_argument(e.context(), a[0], "find");
  ByteRange range;
  if (what == nullptr || !selected(e, self, a, 1, range)) return -1;
  e.context().step(static_cast<int64_t>(self.bytes().size() / 16));
  const std::string_view within = self.bytes().substr(0, range.end);
  const std::string_view part = within.substr(range.begin);
  const size_t found = from_right ? find_bytes_from_right(e.context(), part, what->bytes)
                                  : find_bytes(part, what->bytes);
  if (found == std::string_view::npos) return -1;
  return static_cast<int64_t>(count_characters(within.substr(0, range.begin + found)));
}
Value find_method_(Evaluator& e, const Value& self, Arguments& a) {
  return Value::integer(find_in(e, self, a, false));
}
Value rfind_method(Evaluator& e, const Value& self, Arguments& a) {
  return Value::integer(find_in(e, self, a, true));
}
Value index_of(Evaluator& e, int64_t at) {
  if (at < 0) e.context().fail("substring not found");
  return Value::integer(at);
}
Value index_method(Evaluator& e, const Value& self, Arguments& a) {
  return index_of(e, find_in(e, self, a, false));
}
Value rindex_method(Evaluator& e, const Value& self, Arguments& a) {
  return index_of(e, find_in(e, self, a, true));
}

Value count_method(Evaluator& e, const Value& self, Arguments& a) {
  const Text* what = text_argument(e.context(), a[0], "count");
  ByteRange range;
  if (what == nullptr || !selected(e, self, a, 1, range)) return Value::integer(0);
  const std::string_view within = self.bytes().substr(range.begin, range.end - range.begin);
  if (what->bytes.empty())
    return Value::integer(1 + static_cast<int64_t>(count_characters(within)));
  e.context().step(static_cast<int64_t>(within.size() / 16));
  int64_t n = 0;
  for (size_t at = find_bytes(within, what->bytes); at != std::string_view::npos;
       at = find_bytes(within, what->bytes, at + what->bytes.size())) {
    ++n;
    if (!e.context().step()) break;
  }
  return Value::integer(n);
}

Value affix_method(Evaluator& e, const Value& self, Arguments& a, bool at_start) {
  std::vector<Value> candidates = {a[0]};
  if (a[0].is(Type::tuple)) {
    candidates.clear();
    if (!e.iterate(a[0], candidates)) return {};
  }
  ByteRange range;
  if (!selected(e, self, a, 1, range)) return Value::boolean(false);
  const std::string_view within = self.bytes().substr(range.begin, range.end - range.begin);
  for (const Value& candidate : candidates) {
    const Text* affix = text_argument(e.context(), candidate, at_start ? "startswith" : "endswith");
    if (affix == nullptr) return {};
    e.context().work(affix->bytes.size());
    if (at_start ? within.starts_with(affix->bytes) : within.ends_with(affix->bytes)) {
      return Value::boolean(true);
    }
  }
  return Value::boolean(false);
}
Value startswith_method(Evaluator& e, const Value& self, Arguments& a) {
  return affix_method(e, self, a, true);
}
Value endswith_method(Evaluator& e, const Value& self, Arguments& a) {
  return affix_method(e, self, a, false);
}

Value format_method(Evaluator& e, const Value& self, Arguments& a) {
  return format_braces(e, self, a);
}

constexpr Builtin kStringMethods[] = {
    {"capitalize", case_method<Case::capitalize>},
    {"count", count_method, {"sub", "start", "end"}, 1},
    {"endswith", endswith_method, {"suffix", "start", "end"}, 1},
    {"find", find_method_, {"sub", "start", "end"}, 1},
    {"format", format_method, {}, 0, true},
    {"index", index_method, {"sub", "start", "end"}, 1},
    {"join", join_method, {"iterable"}, 1},
    {"lower", case_method<Case::lower>},
    {"lstrip", strip_left, {"chars"}},
    {"replace", replace_method, {"old", "new", "count"}, 2},
    {"rfind", rfind_method, {"sub", "start", "end"}, 1},
    {"rindex", rindex_method, {"sub", "start", "end"}, 1},
    {"rsplit", rsplit_method, {"sep", "maxsplit"}},
    {"rstrip", strip_right, {"chars"}},
    {"split", split_method, {"sep", "maxsplit"}},
    {"splitlines", splitlines_method, {"keepends"}},
    {"startswith", startswith_method, {"prefix", "start", "end"}, 1},
    {"strip", strip_both, {"chars"}},
    {"swapcase", case_method<Case::swap>},
    {"title", case_method<Case::title>},
    {"upper", case_method<Case::upper>},
};

}  // namespace

std::span<const Builtin> string_methods() {
  return kStringMethods;
}

const Builtin* find_builtin(std::span<const Builtin> table, std::string_view name) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const Builtin& b) { return b.name == name; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace kvasir::jinja
