// Tests: what may stand after `is`.
#include <algorithm>
#include <array>

#include "core/text/jinja/ast.h"
#include "core/text/jinja/builtin.h"
#include "core/text/jinja/evaluator.h"
#include "core/text/jinja/operators.h"
#include "core/text/jinja/repr.h"
#include "core/text/jinja/strings.h"

namespace kvasir::jinja {
namespace {

Value yes_if(bool b) {
  return Value::boolean(b);
}

template <Type kType>
Value is_type(Evaluator&, const Value& v, Arguments&) {
  return yes_if(v.is(kType));
}
Value is_defined(Evaluator&, const Value& v, Arguments&) {
  return yes_if(!v.is_undefined());
}
Value is_number(Evaluator&, const Value& v, Arguments&) {
  return yes_if(v.is_number());
}
Value is_true(Evaluator&, const Value& v, Arguments&) {
  return yes_if(v.is(Type::boolean) && v.as_integer() != 0);
}
Value is_false(Evaluator&, const Value& v, Arguments&) {
  return yes_if(v.is(Type::boolean) && v.as_integer() == 0);
}
Value is_sequence(Evaluator&, const Value& v, Arguments&) {
  return yes_if(v.is_undefined() || v.is(Type::string) || v.is(Type::list) || v.is(Type::tuple) ||
                v.is(Type::dict) || v.is(Type::range));
}
Value is_iterable(Evaluator&, const Value& v, Arguments&) {
  return yes_if(Evaluator::is_iterable(v));
}
Value is_callable(Evaluator&, const Value& v, Arguments&) {
  return yes_if(v.is_undefined() || v.is(Type::function) || v.is(Type::method) ||
                v.is(Type::macro) || v.is(Type::loop) || v.is(Type::joiner));
}
Value is_lower_case(Evaluator& e, const Value& v, Arguments&) {
  const Value text = str_of(e.context(), v);
  return yes_if(text.is(Type::string) && has_only_case(e.context(), text.text(), false));
}
Value is_upper_case(Evaluator& e, const Value& v, Arguments&) {
  const Value text = str_of(e.context(), v);
  return yes_if(text.is(Type::string) && has_only_case(e.context(), text.text(), true));
}

Value remainder_is(Evaluator& e, const Value& v, const Value& divisor, int64_t wanted) {
  const Value rest = binary(e.context(), Operation::modulo, v, divisor);
  return yes_if(!e.context().failed() && equal(e.context(), rest, Value::integer(wanted)));
}
Value is_odd(Evaluator& e, const Value& v, Arguments&) {
  return remainder_is(e, v, Value::integer(2), 1);
}
Value is_even(Evaluator& e, const Value& v, Arguments&) {
  return remainder_is(e, v, Value::integer(2), 0);
}
Value is_divisible(Evaluator& e, const Value& v, Arguments& a) {
  return remainder_is(e, v, a[0], 0);
}

Value is_filter(Evaluator&, const Value& v, Arguments&) {
  return yes_if(v.is(Type::string) && find_filter(v.bytes()) != nullptr);
}
Value is_test(Evaluator&, const Value& v, Arguments&) {
  return yes_if(v.is(Type::string) && find_test(v.bytes()) != nullptr);
}
Value is_same(Evaluator& e, const Value& v, Arguments& a) {
  if (v.type() != a[0].type()) return yes_if(false);
  if (v.identity() != nullptr && !v.is(Type::string)) {
    return yes_if(v.identity() == a[0].identity());
  }
  return yes_if(equal(e.context(), v, a[0]));
}
Value is_in(Evaluator& e, const Value& v, Arguments& a) {
  return yes_if(contains(e, a[0], v));
}
Value is_escaped(Evaluator&, const Value&, Arguments&) {
  return yes_if(false);
}

template <Operation kOperation>
Value compared(Evaluator& e, const Value& v, Arguments& a) {
  return yes_if(compares(e, kOperation, v, a[0]));
}

constexpr Builtin kTests[] = {
    {"!=", compared<Operation::not_equal>, {"other"}, 1},
    {"<", compared<Operation::less>, {"other"}, 1},
    {"<=", compared<Operation::less_equal>, {"other"}, 1},
    {"==", compared<Operation::equal>, {"other"}, 1},
    {">", compared<Operation::greater>, {"other"}, 1},
    {">=", compared<Operation::greater_equal>, {"other"}, 1},
    {"boolean", is_type<Type::boolean>},
    {"callable", is_callable},
    {"defined", is_defined},
    {"divisibleby", is_divisible, {"num"}, 1},
    {"eq", compared<Operation::equal>, {"other"}, 1},
    {"equalto", compared<Operation::equal>, {"other"}, 1},
    {"escaped", is_escaped},
    {"even", is_even},
    {"false", is_false},
    {"filter", is_filter},
    {"float", is_type<Type::real>},
    {"ge", compared<Operation::greater_equal>, {"other"}, 1},
    {"greaterthan", compared<Operation::greater>, {"other"}, 1},
    {"gt", compared<Operation::greater>, {"other"}, 1},
    {"in", is_in, {"seq"}, 1},
    {"integer", is_type<Type::integer>},
    {"iterable", is_iterable},
    {"le", compared<Operation::less_equal>, {"other"}, 1},
    {"lessthan", compared<Operation::less>, {"other"}, 1},
    {"lower", is_lower_case},
    {"lt", compared<Operation::less>, {"other"}, 1},
    {"mapping", is_type<Type::dict>},
    {"ne", compared<Operation::not_equal>, {"other"}, 1},
    {"none", is_type<Type::none>},
    {"number", is_number},
    {"odd", is_odd},
    {"sameas", is_same, {"other"}, 1},
    {"sequence", is_sequence},
    {"string", is_type<Type::string>},
    {"test", is_test},
    {"true", is_true},
    {"undefined", is_type<Type::undefined>},
    {"upper", is_upper_case},
};

}  // namespace

std::span<const Builtin> tests() {
  return kTests;
}
const Builtin* find_test(std::string_view name) {
  return find_builtin(kTests, name);
}

}  // namespace kvasir::jinja
