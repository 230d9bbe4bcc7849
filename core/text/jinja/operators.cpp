#include "core/text/jinja/operators.h"

#include <algorithm>
#include <cmath>

#include "core/text/jinja/evaluator.h"
#include "core/text/jinja/find_bytes.h"
#include "core/text/jinja/unicode.h"

namespace kvasir::jinja {
namespace {

const char* symbol_of(Operation operation) {
  switch (operation) {
    case Operation::add:
      return "+";
    case Operation::subtract:
      return "-";
    case Operation::multiply:
      return "*";
    case Operation::divide:
      return "/";
    case Operation::floor_divide:
      return "//";
    case Operation::modulo:
      return "%";
    case Operation::power:
      return "**";
    case Operation::less:
      return "<";
    case Operation::less_equal:
      return "<=";
    case Operation::greater:
      return ">";
    case Operation::greater_equal:
      return ">=";
    default:
      return "?";
  }
}

Value overflow(Context& context) {
  context.fail(ErrorCode::limit_exceeded, "an integer result is larger than 64 bits");
  return {};
}

/// Exponent >= 0, by squaring.
Value integer_power(Context& context, int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (true) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result))
      return overflow(context);
    exponent >>= 1;
    if (exponent == 0) return Value::integer(result);
    if (__builtin_mul_overflow(base, base, &base)) return overflow(context);
  }
}

/// Rounding down, as Python's // and % do.
Value integer_quotient(Context& context, Operation operation, int64_t a, int64_t b) {
  if (b == 0) {
    context.fail("integer division or modulo by zero");
    return {};
  }
  if (b == -1) {  // the smallest integer has no negative
    if (operation == Operation::modulo) return Value::integer(0);
    int64_t negative = 0;
    return __builtin_sub_overflow(int64_t{0}, a, &negative) ? overflow(context)
                                                            : Value::integer(negative);
  }
  const int64_t quotient = a / b, remainder = a % b;
  const bool adjust = remainder != 0 && (remainder < 0) != (b < 0);
  if (operation == Operation::modulo) return Value::integer(adjust ? remainder + b : remainder);
  return Value::integer(adjust ? quotient - 1 : quotient);
}

Value integer_binary(Context& context, Operation operation, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (operation) {
    case Operation::add:
      return __builtin_add_overflow(a, b, &result) ? overflow(context) : Value::integer(result);
    case Operation::subtract:
      return __builtin_sub_overflow(a, b, &result) ? overflow(context) : Value::integer(result);
    case Operation::multiply:
      return __builtin_mul_overflow(a, b, &result) ? overflow(context) : Value::integer(result);
    case Operation::power:
      if (b >= 0) return integer_power(context, a, b);
      if (a == 0) break;
      return Value::real(std::pow(static_cast<double>(a), static_cast<double>(b)));
    default:
      return integer_quotient(context, operation, a, b);
  }
  context.fail("0 cannot be raised to a negative power");
  return {};
}

Value real_binary(Context& context, Operation operation, double a, double b) {
  const bool divides = operation == Operation::divide || operation == Operation::floor_divide ||
                       operation == Operation::modulo;
  if (divides && b == 0) {
    context.fail("division by zero");
    return {};
  }
  switch (operation) {
    case Operation::add:
      return Value::real(a + b);
    case Operation::subtract:
      return Value::real(a - b);
    case Operation::multiply:
      return Value::real(a * b);
    case Operation::divide:
      return Value::real(a / b);
    case Operation::power: {
      const double result = std::pow(a, b);
      if (std::isinf(result) && !std::isinf(a) && !std::isinf(b)) {
        context.fail("the result of ** is too large");
      } else if (std::isnan(result) && !std::isnan(a) && !std::isnan(b)) {
        context.fail("the result of ** is no real number");
      }
      return Value::real(result);
    }
    default:
      break;
  }
  double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0 && (remainder < 0) != (b < 0)) {
    remainder += b;
    quotient -= 1;
  } else if (remainder == 0) {
    remainder = std::copysign(0.0, b);
  }
  if (operation == Operation::modulo) return Value::real(remainder);
  double rounded = std::floor(quotient);
  if (quotient - rounded > 0.5) rounded += 1;
  return Value::real(quotient == 0 ? std::copysign(0.0, a / b) : rounded);
}

Value repeated(Context& context, const Value& value, int64_t times) {
  times = std::max<int64_t>(times, 0);
  const auto n = static_cast<Wide>(times);
  if (value.is(Type::string)) {
    TextBuilder text(context);
    const Wide size = n * static_cast<int64_t>(value.bytes().size());
    text.reserve(size > INT64_MAX / 2 ? static_cast<size_t>(INT64_MAX / 2)
                                      : static_cast<size_t>(size));
    if (size == 0) times = 0;
    for (int64_t i = 0; i < times && context.step(); ++i) text.append(value.text());
    return make_string(text);
  }
  const auto& source = value.sequence().items;
  const Wide size = n * static_cast<int64_t>(source.size());
  if (!take_items(context, size > INT64_MAX / 64 ? static_cast<size_t>(INT64_MAX / 64)
                                                 : static_cast<size_t>(size))) {
    return {};
  }
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(size));
  if (size == 0) times = 0;
  for (int64_t i = 0; i < times; ++i) items.insert(items.end(), source.begin(), source.end());
  return make_sequence(&context, value.type(), std::move(items));
}

Value joined(Context& context, const Value& left, const Value& right) {
  if (left.is(Type::string)) {
    TextBuilder text(context);
    text.reserve(left.bytes().size() + right.bytes().size());
    text.append(left.text());
    text.append(right.text());
    return make_string(text);
  }
  const auto& a = left.sequence().items;
  const auto& b = right.sequence().items;
  if (!take_items(context, a.size() + b.size())) return {};
  std::vector<Value> items;
  items.reserve(a.size() + b.size());
  items.insert(items.end(), a.begin(), a.end());
  items.insert(items.end(), b.begin(), b.end());
  return make_sequence(&context, left.type(), std::move(items));
}

bool is_repeatable(const Value& v) {
  return v.is(Type::string) || v.is(Type::list) || v.is(Type::tuple);
}

bool fail_if_undefined(Context& context, const Value& value) {
  if (!value.is_undefined()) return false;
  const auto* why = value.undefined_object();
  context.fail("{}", why != nullptr ? why->message : "a value is undefined");
  return true;
}

}  // namespace

Value unary(Context& context, Operation operation, const Value& value) {
  if (context.failed() || fail_if_undefined(context, value)) return {};
  if (value.is_integral()) {
    if (operation == Operation::plus) return Value::integer(value.as_integer());
    int64_t negative = 0;
    return __builtin_sub_overflow(int64_t{0}, value.as_integer(), &negative)
               ? overflow(context)
               : Value::integer(negative);
  }
  if (value.is(Type::real)) {
    return Value::real(operation == Operation::plus ? value.as_real() : -value.as_real());
  }
  context.fail("bad operand type for unary {}: '{}'", operation == Operation::plus ? "+" : "-",
               type_name(value));
  return {};
}

Value binary(Context& context, Operation operation, const Value& left, const Value& right) {
  if (operation == Operation::modulo && left.is(Type::string)) {
    return format_percent(context, left, right);
  }
  if (fail_if_undefined(context, left) || fail_if_undefined(context, right)) return {};
  if (left.is_integral() && right.is_integral() && operation != Operation::divide) {
    return integer_binary(context, operation, left.as_integer(), right.as_integer());
  }
  if (left.is_number() && right.is_number()) {
    return real_binary(context, operation, left.as_number(), right.as_number());
  }
  if (operation == Operation::add && left.type() == right.type() && is_repeatable(left)) {
    return joined(context, left, right);
  }
  if (operation == Operation::multiply) {
    if (is_repeatable(left) && right.is_integral()) {
      return repeated(context, left, right.as_integer());
    }
    if (is_repeatable(right) && left.is_integral()) {
      return repeated(context, right, left.as_integer());
    }
  }
  context.fail("unsupported operand types for {}: '{}' and '{}'", symbol_of(operation),
               type_name(left), type_name(right));
  return {};
}

bool contains(Evaluator& evaluator, const Value& container, const Value& item) {
  Context& context = evaluator.context();
  if (container.is(Type::string)) {
    if (!item.is(Type::string)) {
      context.fail("'in <string>' requires string as left operand, not {}", type_name(item));
      return false;
    }
    context.step(static_cast<int64_t>(container.bytes().size() / 16));
    return !context.failed() &&
           find_bytes(container.bytes(), item.bytes()) != std::string_view::npos;
  }
  if (container.is(Type::dict)) {
    if (!is_hashable(item)) context.fail("unhashable type: '{}'", type_name(item));
    return lookup(context, container.dict(), item) != nullptr;
  }
  if (container.is(Type::range) && item.is_integral()) {
    const Range& range = container.range();
    const Wide offset = static_cast<Wide>(item.as_integer()) - range.start;
    return offset % range.step == 0 && offset / range.step >= 0 &&
           offset / range.step < range.size();
  }
  if (container.has_items() && !container.is(Type::generator)) {
    for (const Value& other : container.sequence().items) {
      if (equal(context, other, item)) return true;
      if (context.failed()) return false;
    }
    return false;
  }
  std::vector<Value> items;
  if (!evaluator.iterate(container, items)) return false;
  return std::any_of(items.begin(), items.end(),
                     [&](const Value& other) { return equal(context, other, item); });
}

bool compares(Evaluator& evaluator, Operation operation, const Value& left, const Value& right) {
  Context& context = evaluator.context();
  switch (operation) {
    case Operation::equal:
      return equal(context, left, right);
    case Operation::not_equal:
      return !equal(context, left, right);
    case Operation::in:
      return contains(evaluator, right, left);
    case Operation::not_in:
      return !contains(evaluator, right, left);
    default:
      break;
  }
  if (fail_if_undefined(context, left) || fail_if_undefined(context, right)) return false;
  const int order = compare(context, left, right, symbol_of(operation));
  switch (operation) {
    case Operation::less:
      return order == -1;
    case Operation::less_equal:
      return order == -1 || order == 0;
    case Operation::greater:
      return order == 1;
    default:
      return order == 1 || order == 0;
  }
}

}  // namespace kvasir::jinja
