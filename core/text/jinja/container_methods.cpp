// Methods of dicts, lists, numbers, loops and cyclers, and of strings: those about what they are.
#include <algorithm>

#include "core/text/jinja/builtin.h"
#include "core/text/jinja/evaluator.h"
#include "core/text/jinja/find_bytes.h"
#include "core/text/jinja/strings.h"
#include "core/text/jinja/unicode.h"

namespace kvasir::jinja {
namespace {

Value get_method(Evaluator& e, const Value& self, Arguments& a) {
  if (!is_hashable(a[0])) e.context().fail("unhashable type: '{}'", type_name(a[0]));
  if (const Value* found = lookup(e.context(), self.dict(), a[0])) return *found;
  return a.has(1) ? a[1] : Value::none();
}

Value dict_view(Evaluator& e, const Value& self, const char* name, bool keys, bool values) {
  std::vector<Value> items;
  const auto& source = self.dict().items;
  if (!take_items(e.context(), source.size())) return {};
  items.reserve(source.size());
  for (const auto& [key, value] : source) {
    if (keys && values) {
      items.push_back(make_sequence(&e.context(), Type::tuple, {key, value}));
    } else {
      items.push_back(keys ? key : value);
    }
  }
  return make_sequence(&e.context(), Type::view, std::move(items), name);
}
Value keys_method(Evaluator& e, const Value& self, Arguments&) {
  return dict_view(e, self, "dict_keys", true, false);
}
Value values_method(Evaluator& e, const Value& self, Arguments&) {
  return dict_view(e, self, "dict_values", false, true);
}
Value items_method(Evaluator& e, const Value& self, Arguments&) {
  return dict_view(e, self, "dict_items", true, true);
}
Value copy_method(Evaluator&, const Value& self, Arguments&) {
  return self;
}

Value list_index(Evaluator& e, const Value& self, Arguments& a) {
  std::vector<Value> items;
  if (!e.iterate(self, items)) return {};
  for (size_t i = 0; i < items.size(); ++i) {
    if (equal(e.context(), items[i], a[0])) return Value::integer(static_cast<int64_t>(i));
    if (e.context().failed()) return {};
  }
  e.context().fail("the value is not in the {}", type_name(self));
  return {};
}
Value list_count(Evaluator& e, const Value& self, Arguments& a) {
  int64_t n = 0;
  std::vector<Value> items;
  e.iterate(self, items);
  for (const Value& item : items) n += equal(e.context(), item, a[0]) ? 1 : 0;
  return Value::integer(n);
}

/// True when the text is not empty and every character is of a kind.
Value all_of(Evaluator& e, const Value& self, bool (*is_kind)(int32_t)) {
  const std::string_view text = self.bytes();
  e.context().step(static_cast<int64_t>(text.size() / 8));
  for (size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    if (!is_kind(c.code)) return Value::boolean(false);
    at += c.n_bytes;
  }
  return Value::boolean(!text.empty());
}
Value isalpha(Evaluator& e, const Value& self, Arguments&) {
  return all_of(e, self, is_letter);
}
Value isdigit(Evaluator& e, const Value& self, Arguments&) {
  return all_of(e, self, is_digit);
}
Value isspace(Evaluator& e, const Value& self, Arguments&) {
  return all_of(e, self, is_space);
}
Value isalnum(Evaluator& e, const Value& self, Arguments&) {
  return all_of(e, self, [](int32_t c) { return is_word(c) && c != '_'; });
}
Value isascii(Evaluator&, const Value& self, Arguments&) {
  return Value::boolean(self.string().is_ascii());
}
Value islower(Evaluator& e, const Value& self, Arguments&) {
  return Value::boolean(has_only_case(e.context(), self.text(), false));
}
Value isupper(Evaluator& e, const Value& self, Arguments&) {
  return Value::boolean(has_only_case(e.context(), self.text(), true));
}

Value remove_affix(Evaluator& e, const Value& self, Arguments& a, bool at_start) {
  const Text* affix = text_argument(e.context(), a[0], at_start ? "removeprefix" : "removesuffix");
  if (affix == nullptr) return {};
  const Text& text = self.text();
  const std::string_view bytes = text.bytes;
  TextBuilder out(e.context());
  const size_t n = affix->bytes.size();
  if (at_start && bytes.starts_with(affix->bytes)) {
    out.append(text, n, bytes.size());
  } else if (!at_start && bytes.ends_with(affix->bytes)) {
    out.append(text, 0, bytes.size() - n);
  } else {
    return self;
  }
  return make_string(out);
}
Value removeprefix(Evaluator& e, const Value& self, Arguments& a) {
  return remove_affix(e, self, a, true);
}
Value removesuffix(Evaluator& e, const Value& self, Arguments& a) {
  return remove_affix(e, self, a, false);
}

Value partition_at(Evaluator& e, const Value& self, Arguments& a, bool from_right) {
  const Text* separator = text_argument(e.context(), a[0], "partition");
  if (separator == nullptr || !e.context().step(static_cast<int64_t>(self.bytes().size() / 16))) {
    return {};
  }
  if (separator->bytes.empty()) {
    e.context().fail("empty separator");
    return {};
  }
  const Text& text = self.text();
  const size_t at = from_right ? find_bytes_from_right(e.context(), text.bytes, separator->bytes)
                               : find_bytes(text.bytes, separator->bytes);
  const auto part = [&](size_t begin, size_t end) {
    TextBuilder out(e.context());
    out.append(text, begin, end);
    return make_string(out);
  };
  const size_t size = text.bytes.size();
  std::vector<Value> parts;
  if (at == std::string::npos) {
    parts = {part(0, from_right ? 0 : size), part(0, 0), part(from_right ? 0 : size, size)};
  } else {
    const size_t after = at + separator->bytes.size();
    parts = {part(0, at), part(at, after), part(after, size)};
  }
  return make_sequence(&e.context(), Type::tuple, std::move(parts));
}
Value partition(Evaluator& e, const Value& self, Arguments& a) {
  return partition_at(e, self, a, false);
}
Value rpartition(Evaluator& e, const Value& self, Arguments& a) {
  return partition_at(e, self, a, true);
}

enum class Side { left, right, centre };
Value pad_method(Evaluator& e, const Value& self, Arguments& a, Side side) {
  const Text space = Text::markup(" ");
  const Text* fill = a.has(1) ? text_argument(e.context(), a[1], "ljust") : &space;
  const int64_t width = integer_argument(e.context(), a[0], 0, "ljust");
  if (fill == nullptr || e.context().failed()) return {};
  if (count_characters(fill->bytes) != 1) {
    e.context().fail("the fill character must be exactly one character long");
    return {};
  }
  const auto size = static_cast<int64_t>(self.string().n_characters);
  const int64_t missing = std::max<int64_t>(width - size, 0);
  // As Python: the odd character goes to the left when the width is odd too.
  const int64_t left = side == Side::right    ? missing
                       : side == Side::centre ? missing / 2 + (missing & width & 1)
                                              : 0;
  TextBuilder out(e.context());
  for (int64_t i = 0; i < left && e.context().step(); ++i) out.append(*fill);
  out.append(self.text());
  for (int64_t i = left; i < missing && e.context().step(); ++i) out.append(*fill);
  return make_string(out);
}
Value ljust(Evaluator& e, const Value& self, Arguments& a) {
  return pad_method(e, self, a, Side::left);
}
Value rjust(Evaluator& e, const Value& self, Arguments& a) {
  return pad_method(e, self, a, Side::right);
}
Value center(Evaluator& e, const Value& self, Arguments& a) {
  return pad_method(e, self, a, Side::centre);
}
Value zfill(Evaluator& e, const Value& self, Arguments& a) {
  const int64_t width = integer_argument(e.context(), a[0], 0, "zfill");
  const int64_t missing = width - static_cast<int64_t>(self.string().n_characters);
  const Text& text = self.text();
  const size_t sign = text.bytes.starts_with('-') || text.bytes.starts_with('+') ? 1 : 0;
  TextBuilder out(e.context());
  out.append(text, 0, sign);
  for (int64_t i = 0; i < missing && e.context().step(); ++i) out.append_markup("0");
  out.append(text, sign, text.bytes.size());
  return make_string(out);
}

Value is_integer(Evaluator&, const Value& self, Arguments&) {
  const double d = self.as_number();
  return Value::boolean(d - d == 0 &&
                        static_cast<double>(static_cast<int64_t>(std::clamp(d, -9e18, 9e18))) == d);
}

Value loop_cycle(Evaluator& e, const Value& self, Arguments& a) {
  if (!a.positional.empty()) return a[self.loop()->index % a.positional.size()];
  e.context().fail("no items for cycling given");
  return {};
}
Value loop_changed(Evaluator& e, const Value& self, Arguments& a) {
  Value now = make_sequence(&e.context(), Type::tuple, std::move(a.positional));
  Value& last = self.loop()->last_changed;
  const bool is_same = !last.is(Type::missing) && equal(e.context(), last, now);
  last = std::move(now);
  return Value::boolean(!is_same);
}
Value cycler_next(Evaluator&, const Value& self, Arguments&) {
  Cycler& c = *self.cycler();
  const size_t at = c.position;
  c.position = (at + 1) % c.items.size();
  return c.items[at];
}
Value cycler_reset(Evaluator&, const Value& self, Arguments&) {
  self.cycler()->position = 0;
  return Value::none();
}

constexpr Builtin kMoreStringMethods[] = {
    {"center", center, {"width", "fillchar"}, 1},
    {"isalnum", isalnum},
    {"isalpha", isalpha},
    {"isascii", isascii},
    {"isdecimal", isdigit},
    {"isdigit", isdigit},
    {"islower", islower},
    {"isnumeric", isdigit},
    {"isspace", isspace},
    {"isupper", isupper},
    {"ljust", ljust, {"width", "fillchar"}, 1},
    {"partition", partition, {"sep"}, 1},
    {"removeprefix", removeprefix, {"prefix"}, 1},
    {"removesuffix", removesuffix, {"suffix"}, 1},
    {"rjust", rjust, {"width", "fillchar"}, 1},
    {"rpartition", rpartition, {"sep"}, 1},
    {"zfill", zfill, {"width"}, 1},
};
constexpr Builtin kDictMethods[] = {
    {"copy", copy_method},     {"get", get_method, {"key", "default"}, 1},
    {"items", items_method},   {"keys", keys_method},
    {"values", values_method},
};
constexpr Builtin kListMethods[] = {
    {"copy", copy_method},
    {"count", list_count, {"value"}, 1},
    {"index", list_index, {"value"}, 1},
};
constexpr Builtin kRealMethods[] = {{"is_integer", is_integer}};
constexpr Builtin kLoopMethods[] = {{"changed", loop_changed, {}, 0, true},
                                    {"cycle", loop_cycle, {}, 0, true}};
constexpr Builtin kCyclerMethods[] = {{"next", cycler_next}, {"reset", cycler_reset}};

constexpr std::string_view kChangesDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kChangesList[] = {"append", "clear", "pop",    "reverse",
                                             "insert", "sort",  "extend", "remove"};

bool is_in(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::span<const Builtin> more_string_methods() {
  return kMoreStringMethods;
}

Method find_method(const Value& object, std::string_view name) {
  switch (object.type()) {
    case Type::string: {
      const Builtin* method = find_builtin(string_methods(), name);
      return {method != nullptr ? method : find_builtin(kMoreStringMethods, name), false};
    }
    case Type::dict:
      return {find_builtin(kDictMethods, name), is_in(kChangesDict, name)};
    case Type::list:
      return {find_builtin(kListMethods, name), is_in(kChangesList, name)};
    case Type::range:
    case Type::tuple:
      return {name == "copy" ? nullptr : find_builtin(kListMethods, name), false};
    case Type::real:
    case Type::integer:
      return {find_builtin(kRealMethods, name), false};
    case Type::loop:
      return {find_builtin(kLoopMethods, name), false};
    case Type::cycler:
      return {find_builtin(kCyclerMethods, name), false};
    default:
      return {};
  }
}

}  // namespace kvasir::jinja
