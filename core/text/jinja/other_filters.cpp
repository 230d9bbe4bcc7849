// Filters about single values.
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

Value abs_filter(Evaluator& e, const Value& v, Arguments&) {
  if (v.is(Type::real)) return Value::real(std::abs(v.as_real()));
  if (v.is_integral()) {
    return v.as_integer() < 0 ? unary(e.context(), Operation::negate, v)
                              : Value::integer(v.as_integer());
  }
  return unary(e.context(), Operation::negate, v);  // says what is wrong
}

Value attr(Evaluator& e, const Value& v, Arguments& a) {
  if (text_argument(e.context(), a[0], "attr") == nullptr) return {};
  // Attributes only, never the items of a dict.
  if (v.is(Type::dict) && find_method(v, a[0].bytes()).builtin == nullptr) {
    return missing_attribute(e.context(), v, a[0]);
  }
  return e.get_attribute(v, a[0]);
}

Value default_filter(Evaluator& e, const Value& v, Arguments& a) {
  const bool replaced = v.is_undefined() || (a.has(1) && truth(a[1]) && !truth(v));
  if (!replaced) return v;
  return a.has(0) ? a[0] : make_markup(e.context(), "");
}

Value length_filter(Evaluator& e, const Value& v, Arguments&) {
  const int64_t n = length_of(v);
  if (n < 0) e.context().fail("object of type '{}' has no length", type_name(v));
  return Value::integer(n);
}

Value list_filter(Evaluator& e, const Value& v, Arguments&) {
  std::vector<Value> items;
  return e.iterate(v, items) ? make_list(e.context(), std::move(items)) : Value();
}

Value first(Evaluator& e, const Value& v, Arguments&) {
  bool found = false;
  Value item = item_at(e.context(), v, 0, found);
  if (found) return item;
  std::vector<Value> items;
  if (v.is(Type::generator)) {  // takes one, the others stay
    const Sequence& source = v.sequence();
    if (!source.deferred_error.empty()) e.context().fail("{}", source.deferred_error);
    if (!source.consumed && !source.items.empty()) return source.items[0];
  } else if (!e.iterate(v, items)) {
    return {};
  }
  return items.empty() ? make_undefined(e.context(), "no first item, the sequence was empty")
                       : items[0];
}

Value last(Evaluator& e, const Value& v, Arguments&) {
  bool found = false;
  Value item = item_at(e.context(), v, -1, found);
  if (found) return item;
  std::vector<Value> items;
  if (v.is(Type::generator)) e.context().fail("'generator' object is not reversible");
  if (!e.iterate(v, items)) return {};
  return items.empty() ? make_undefined(e.context(), "no last item, the sequence was empty")
                       : items.back();
}

Value reverse(Evaluator& e, const Value& v, Arguments&) {
  if (v.is(Type::string)) {
    return slice(e.context(), v, Value::none(), Value::none(), Value::integer(-1));
  }
  std::vector<Value> items;
  if (!e.iterate(v, items)) return {};
  std::reverse(items.begin(), items.end());
  if (v.is(Type::generator)) return make_list(e.context(), std::move(items));
  const char* name = v.is(Type::list) ? "list_reverseiterator" : "reversed";
  return make_sequence(&e.context(), Type::generator, std::move(items), name);
}

Value items_filter(Evaluator& e, const Value& v, Arguments&) {
  if (!v.is(Type::dict) && !v.is_undefined()) {
    return make_failing_generator(
        e.context(), fmt::format("filter 'items' needs a dict, not '{}'", type_name(v)));
  }
  std::vector<Value> pairs;
  if (v.is(Type::dict)) {
    for (const auto& [key, value] : v.dict().items) {
      if (!e.context().step()) return {};
      pairs.push_back(make_sequence(&e.context(), Type::tuple, {key, value}));
    }
  }
  return make_sequence(&e.context(), Type::generator, std::move(pairs), "generator");
}

std::optional<int64_t> truncated(double d) {
  if (!(std::abs(d) < 9.2e18)) return std::nullopt;
  return static_cast<int64_t>(d);
}

Value int_filter(Evaluator& e, const Value& v, Arguments& a) {
  const Value otherwise = a.has(0) ? a[0] : Value::integer(0);
  if (v.is_integral()) return Value::integer(v.as_integer());
  std::optional<int64_t> number;
  if (v.is(Type::real)) {
    number = truncated(v.as_real());
  } else if (v.is(Type::string)) {
    const int64_t base = a.has(1) ? integer_argument(e.context(), a[1], 10, "int") : 10;
    if (base != 0 && (base < 2 || base > 36)) return otherwise;
    number = read_integer(v.bytes(), static_cast<int>(base));
    if (!number) {
      const auto real = read_real(v.bytes());
      if (real) number = truncated(*real);
    }
  } else if (v.is_undefined()) {
    e.context().fail("{}", v.undefined_object() != nullptr ? v.undefined_object()->message
                                                           : "a value is undefined");
  }
  return number ? Value::integer(*number) : otherwise;
}

Value float_filter(Evaluator& e, const Value& v, Arguments& a) {
  if (v.is_number()) return Value::real(v.as_number());
  if (v.is(Type::string)) {
    if (const auto number = read_real(v.bytes())) return Value::real(*number);
  } else if (v.is_undefined()) {
    e.context().fail("{}", v.undefined_object() != nullptr ? v.undefined_object()->message
                                                           : "a value is undefined");
  }
  return a.has(0) ? a[0] : Value::real(0.0);
}

/// round(value, precision) with ties decided by the exact binary value, as Python does.
double rounded(double value, int64_t precision) {
  if (!std::isfinite(value) || precision > 300) return value;
  if (precision >= 0) {
    char buffer[700];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed,
                                   static_cast<int>(precision));
    double read = value;
    std::from_chars(buffer, end.ptr, read);
    return read;
  }
  if (precision < -300) return 0.0 * value;
  const double scale = std::pow(10.0, static_cast<double>(-precision));
  return std::nearbyint(value / scale) * scale;
}

Value round_filter(Evaluator& e, const Value& v, Arguments& a) {
  Context& context = e.context();
  const int64_t precision = a.has(0) ? integer_argument(context, a[0], 0, "round") : 0;
  const std::string method =
      a.has(1) && a[1].is(Type::string) ? std::string(a[1].bytes()) : "common";
  if (!v.is_number()) {
    context.fail("filter 'round' needs a number, not '{}'", type_name(v));
    return {};
  }
  if (method == "common") {
    if (v.is_integral() && precision >= 0) return Value::integer(v.as_integer());
    const double value = rounded(v.as_number(), precision);
    return v.is_integral() ? Value::integer(truncated(value).value_or(0)) : Value::real(value);
  }
  if (method != "ceil" && method != "floor") {
    context.fail("the method of filter 'round' must be common, ceil or floor");
    return {};
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = v.as_number() * scale;
  return Value::real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

Value filesizeformat(Evaluator& e, const Value& v, Arguments& a) {
  const bool is_binary = a.has(0) && truth(a[0]);
  const auto number = v.is_number()        ? std::optional<double>(v.as_number())
                      : v.is(Type::string) ? read_real(v.bytes())
                                           : std::nullopt;
  if (!number) {
    e.context().fail("filter 'filesizeformat' needs a number, not '{}'", type_name(v));
    return {};
  }
  const double base = is_binary ? 1024 : 1000;
  if (*number == 1) return make_markup(e.context(), "1 Byte");
  if (*number < base) {
    return make_markup(e.context(), fmt::format("{} Bytes", truncated(*number).value_or(0)));
  }
  constexpr const char* kDecimal[] = {"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"};
  constexpr const char* kBinary[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"};
  double unit = base;
  for (size_t i = 0;; ++i, unit *= base) {
    if (*number >= unit * base && i < 7) continue;
    return make_markup(e.context(), fmt::format("{:.1f} {}", *number / unit,
                                                is_binary ? kBinary[i] : kDecimal[i]));
  }
}

constexpr Builtin kOtherFilters[] = {
    {"abs", abs_filter},
    {"attr", attr, {"name"}, 1},
    {"count", length_filter},
    {"d", default_filter, {"default_value", "boolean"}},
    {"default", default_filter, {"default_value", "boolean"}},
    {"filesizeformat", filesizeformat, {"binary"}},
    {"first", first},
    {"float", float_filter, {"default"}},
    {"int", int_filter, {"default", "base"}},
    {"items", items_filter},
    {"last", last},
    {"length", length_filter},
    {"list", list_filter},
    {"reverse", reverse},
    {"round", round_filter, {"precision", "method"}},
};

}  // namespace

std::span<const Builtin> other_filters() {
  return kOtherFilters;
}

}  // namespace kvasir::jinja
