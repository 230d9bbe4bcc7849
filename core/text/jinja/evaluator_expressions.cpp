// Expressions.
#include <algorithm>

#include "core/text/jinja/evaluator.h"
#include "core/text/jinja/operators.h"
#include "core/text/jinja/repr.h"

namespace kvasir::jinja {

Value Evaluator::evaluate(ExprId id) {
  const Expression& e = expression(id);
  if (e.kind == ExprKind::constant) return e.constant;
  const Nested nested(context_);
  if (!nested || !context_.step()) return {};
  context_.set_line(e.line);
  switch (e.kind) {
    case ExprKind::constant:
      break;
    case ExprKind::name:
      return evaluate_name(e);
    case ExprKind::list:
    case ExprKind::tuple:
      return evaluate_items(e);
    case ExprKind::dict:
      return evaluate_dict(e);
    case ExprKind::unary:
      return unary(context_, e.operation, evaluate(e.items[0]));
    case ExprKind::binary: {
      const Value left = evaluate(e.items[0]);
      const Value right = evaluate(e.items[1]);
      return context_.failed() ? Value() : binary(context_, e.operation, left, right);
    }
    case ExprKind::logic_and:
    case ExprKind::logic_or:
      return evaluate_logic(e);
    case ExprKind::logic_not:
      return Value::boolean(!truth(evaluate(e.items[0])));
    case ExprKind::compare:
      return evaluate_compare(e);
    case ExprKind::concat:
      return evaluate_concat(e);
    case ExprKind::conditional:
      return evaluate_conditional(e);
    case ExprKind::attribute: {
      const Value object = evaluate(e.items[0]);
      context_.set_line(e.line);
      return context_.failed() ? Value() : get_attribute(object, e.constant);
    }
    case ExprKind::item: {
      const Value object = evaluate(e.items[0]);
      const Value key = evaluate(e.items[1]);
      context_.set_line(e.line);
      return context_.failed() ? Value() : get_item(object, key);
    }
    case ExprKind::slice:
      return evaluate_slice(e);
    case ExprKind::call:
      return evaluate_call(e);
    case ExprKind::filter:
    case ExprKind::test: {
      const Value input = evaluate(e.items[0]);
      return context_.failed() ? Value() : evaluate_builtin(e, input);
    }
  }
  return {};
}

Value Evaluator::evaluate_name(const Expression& e) {
  if (const Value* value = find_variable(e.name)) return *value;
  if (const Builtin* function = find_builtin(functions(), name_of(e.name))) return Value(function);
  return make_undefined(context_, fmt::format("'{}' is undefined", shortened(name_of(e.name))));
}

Value Evaluator::evaluate_items(const Expression& e) {
  std::vector<Value> items;
  items.reserve(e.items.size());
  for (const ExprId item : e.items) items.push_back(evaluate(item));
  const Type type = e.kind == ExprKind::list ? Type::list : Type::tuple;
  return make_sequence(&context_, type, std::move(items));
}

Value Evaluator::evaluate_dict(const Expression& e) {
  DictBuilder dict(context_);
  for (size_t i = 0; i + 1 < e.items.size() && !context_.failed(); i += 2) {
    const Value key = evaluate(e.items[i]);
    dict.set(key, evaluate(e.items[i + 1]));
  }
  return dict.finish();
}

Value Evaluator::evaluate_logic(const Expression& e) {
  Value left = evaluate(e.items[0]);
  if (context_.failed()) return {};
  const bool decided = truth(left) == (e.kind == ExprKind::logic_or);
  return decided ? left : evaluate(e.items[1]);
}

/// a < b < c is a < b and b < c, with b evaluated once.
Value Evaluator::evaluate_compare(const Expression& e) {
  Value left = evaluate(e.items[0]);
  for (size_t i = 0; i < e.operations.size(); ++i) {
    Value right = evaluate(e.items[i + 1]);
    if (context_.failed()) return {};
    context_.set_line(e.line);
    const bool holds = compares(*this, e.operations[i], left, right);
    if (context_.failed() || !holds) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Evaluator::evaluate_concat(const Expression& e) {
  TextBuilder text(context_);
  for (const ExprId item : e.items) {
    const Value value = evaluate(item);
    append_str(text, value);
    if (context_.failed()) return {};
  }
  return make_string(text);
}

Value Evaluator::evaluate_conditional(const Expression& e) {
  const bool holds = truth(evaluate(e.items[0]));
  if (context_.failed()) return {};
  if (holds) return evaluate(e.items[1]);
  if (e.items[2] >= 0) return evaluate(e.items[2]);
  return make_undefined(context_, "an inline if was false and has no else");
}

Value Evaluator::evaluate_slice(const Expression& e) {
  const Value object = evaluate(e.items[0]);
  const auto part = [&](size_t i) { return e.items[i] < 0 ? Value::none() : evaluate(e.items[i]); };
  const Value start = part(1), stop = part(2), step = part(3);
  context_.set_line(e.line);
  return context_.failed() ? Value() : slice(context_, object, start, stop, step);
}

Arguments Evaluator::evaluate_arguments(const Expression& e, size_t first) {
  Arguments arguments;
  for (size_t i = first; i < e.items.size(); ++i) {
    arguments.positional.push_back(evaluate(e.items[i]));
  }
  for (const Keyword& keyword : e.keywords) {
    arguments.keywords.emplace_back(make_markup(context_, name_of(keyword.name)),
                                    evaluate(keyword.value));
  }
  if (e.star >= 0 || e.double_star >= 0) spread_arguments(e, arguments);
  return arguments;
}

/// *list and **dict.
void Evaluator::spread_arguments(const Expression& e, Arguments& arguments) {
  constexpr size_t kMostArguments = 1000;
  if (e.star >= 0) iterate(evaluate(e.star), arguments.positional);
  if (e.double_star >= 0) {
    const Value more = evaluate(e.double_star);
    if (context_.failed()) return;
    if (!more.is(Type::dict)) {
      context_.fail("the argument after ** is a {}, not a dict", type_name(more));
      return;
    }
    for (const auto& [key, value] : more.dict().items) {
      if (!key.is(Type::string)) {
        context_.fail("keywords must be strings");
        return;
      }
      if (arguments.keywords.size() < kMostArguments) arguments.keywords.emplace_back(key, value);
    }
  }
  if (std::max(arguments.positional.size(), arguments.keywords.size()) >= kMostArguments) {
    context_.fail(ErrorCode::limit_exceeded, "a call has {} or more arguments", kMostArguments);
  }
}

Value Evaluator::evaluate_call(const Expression& e, const Value* caller) {
  const Value callee = evaluate(e.items[0]);
  if (context_.failed()) return {};
  Arguments arguments = evaluate_arguments(e, 1);
  if (caller != nullptr) arguments.keywords.emplace_back(make_markup(context_, "caller"), *caller);
  context_.set_line(e.line);
  return context_.failed() ? Value() : call(callee, std::move(arguments));
}

/// A filter or a test.
Value Evaluator::evaluate_builtin(const Expression& e, const Value& input) {
  const char* kind = e.kind == ExprKind::filter ? "filter" : "test";
  context_.set_line(e.line);
  if (e.builtin == nullptr) {
    context_.fail("unknown {} '{}'", kind, name_of(e.name));
    return {};
  }
  Arguments arguments = evaluate_arguments(e, 1);
  context_.set_line(e.line);
  return context_.failed() ? Value() : call_builtin(*e.builtin, kind, input, arguments);
}

}  // namespace kvasir::jinja
