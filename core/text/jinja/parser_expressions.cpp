// Expressions, with jinja2's precedences from loosest to tightest:
// if-else, or, and, not, comparisons, + -, ~, * / // %, **, unary + -, postfix, filters and tests.
#include "core/base/error.h"
#include "core/text/jinja/builtin.h"
#include "core/text/jinja/parser_state.h"

namespace kvasir::jinja {
namespace {

struct BinaryOperator {
  std::string_view symbol;
  Operation operation;
};
constexpr int kOr = 0, kAnd = 1, kSum = 2, kProduct = 3, kPower = 4;
constexpr BinaryOperator kSums[] = {{"+", Operation::add}, {"-", Operation::subtract}};
constexpr BinaryOperator kProducts[] = {{"*", Operation::multiply},
                                        {"/", Operation::divide},
                                        {"//", Operation::floor_divide},
                                        {"%", Operation::modulo}};
constexpr BinaryOperator kPowers[] = {{"**", Operation::power}};
constexpr BinaryOperator kComparisons[] = {
    {"==", Operation::equal},      {"!=", Operation::not_equal}, {"<", Operation::less},
    {"<=", Operation::less_equal}, {">", Operation::greater},    {">=", Operation::greater_equal}};

std::span<const BinaryOperator> operators_of(int level) {
  if (level == kSum) return kSums;
  if (level == kProduct) return kProducts;
  return kPowers;
}

}  // namespace

ExprId Parser::parse_expression(bool with_conditional) {
  if (!with_conditional) return parse_binary(kOr);
  const size_t first_unknown = unknown_.size();
  ExprId value = parse_binary(kOr);
  while (skip_name("if")) {
    const ExprId test = parse_binary(kOr);
    ExprId otherwise = -1;
    if (skip_name("else")) {
      const Level level(*this);
      otherwise = parse_expression();
    }
    value = add(make(ExprKind::conditional, {test, value, otherwise}));
    for (size_t i = first_unknown; i < unknown_.size(); ++i) unknown_[i].is_soft = true;
  }
  return value;
}

ExprId Parser::parse_binary(int level) {
  const auto parse_operand = [&] {
    switch (level) {
      case kOr:
        return parse_binary(kAnd);
      case kAnd:
        return parse_not();
      case kSum:
        return parse_concat();
      case kProduct:
        return parse_binary(kPower);
      default:
        return parse_unary(true);
    }
  };
  ExprId left = parse_operand();
  while (!failed()) {
    Expression e = make(ExprKind::binary);
    if (level == kOr || level == kAnd) {
      if (!skip_name(level == kOr ? "or" : "and")) break;
      e.kind = level == kOr ? ExprKind::logic_or : ExprKind::logic_and;
    } else {
      for (const auto& op : operators_of(level)) {
        if (is_symbol(op.symbol)) e.operation = op.operation;
      }
      if (e.operation == Operation::none) break;
      skip();
    }
    e.items = {left, parse_operand()};
    left = add(std::move(e));
  }
  return left;
}

ExprId Parser::parse_not() {
  if (!is_name("not")) return parse_compare();
  const Level level(*this);
  Expression e = make(ExprKind::logic_not);
  skip();
  e.items = {parse_not()};
  return add(std::move(e));
}

ExprId Parser::parse_compare() {
  Expression e = make(ExprKind::compare);
  e.items = {parse_binary(kSum)};
  while (!failed()) {
    Operation operation = Operation::none;
    for (const auto& op : kComparisons) {
      if (is_symbol(op.symbol)) operation = op.operation;
    }
    if (operation != Operation::none) {
      skip();
    } else if (skip_name("in")) {
      operation = Operation::in;
    } else if (is_name("not") && next().type == TokenType::name && next().text == "in") {
      skip();
      skip();
      operation = Operation::not_in;
    } else {
      break;
    }
    e.operations.push_back(operation);
    e.items.push_back(parse_binary(kSum));
  }
  return e.operations.empty() ? e.items[0] : add(std::move(e));
}

ExprId Parser::parse_concat() {
  Expression e = make(ExprKind::concat);
  e.items = {parse_binary(kProduct)};
  while (skip_symbol("~")) e.items.push_back(parse_binary(kProduct));
  return e.items.size() == 1 ? e.items[0] : add(std::move(e));
}

ExprId Parser::parse_unary(bool with_filters) {
  const Level level(*this);
  if (failed()) return 0;
  ExprId value = -1;
  if (is_symbol("-") || is_symbol("+")) {
    Expression e = make(ExprKind::unary);
    e.operation = is_symbol("-") ? Operation::negate : Operation::plus;
    skip();
    e.items = {parse_unary(false)};
    value = add(std::move(e));
  } else {
    value = parse_primary();
  }
  value = parse_postfix(value);
  return with_filters ? parse_filters_and_tests(value) : value;
}

ExprId Parser::parse_constant(Value value) {
  Expression e = make(ExprKind::constant);
  e.constant = std::move(value);
  skip();
  return add(std::move(e));
}

ExprId Parser::parse_primary() {
  const Token& token = current();
  switch (token.type) {
    case TokenType::name: {
      const std::string& name = token.text;
      if (name == "true" || name == "True") return parse_constant(Value::boolean(true));
      if (name == "false" || name == "False") return parse_constant(Value::boolean(false));
      if (name == "none" || name == "None") return parse_constant(Value::none());
      Expression e = make(ExprKind::name);
      e.name = name_id(name);
      skip();
      return add(std::move(e));
    }
    case TokenType::string: {
      std::string text = token.text;
      while (next().type == TokenType::string) {  // adjacent strings are one
        skip();
        text += current().text;
      }
      return parse_constant(make_string(nullptr, Text{std::move(text), {}}));
    }
    case TokenType::integer:
      return parse_constant(Value::integer(token.integer));
    case TokenType::real:
      return parse_constant(Value::real(token.real));
    default:
      break;
  }
  if (skip_symbol("(")) {
    const ExprId value = parse_tuple(true, true);
    expect_symbol(")");
    return value;
  }
  if (is_symbol("[")) return parse_list();
  if (is_symbol("{")) return parse_dict();
  fail_unexpected("");
  return 0;
}

ExprId Parser::parse_list() {
  Expression e = make(ExprKind::list);
  skip();
  while (!failed() && !is_symbol("]")) {
    if (!e.items.empty()) expect_symbol(",");
    if (is_symbol("]")) break;
    e.items.push_back(parse_expression());
  }
  expect_symbol("]");
  return add(std::move(e));
}

ExprId Parser::parse_dict() {
  Expression e = make(ExprKind::dict);
  skip();
  while (!failed() && !is_symbol("}")) {
    if (!e.items.empty()) expect_symbol(",");
    if (is_symbol("}")) break;
    e.items.push_back(parse_expression());
    expect_symbol(":");
    e.items.push_back(parse_expression());
  }
  expect_symbol("}");
  return add(std::move(e));
}

bool Parser::is_tuple_end(std::string_view end_name) const {
  return current().type == TokenType::variable_end || current().type == TokenType::block_end ||
         is_symbol(")") || (!end_name.empty() && is_name(end_name));
}

/// One expression, or several with commas: a tuple.
ExprId Parser::parse_tuple(bool with_conditional, bool in_parentheses, std::string_view end_name) {
  Expression e = make(ExprKind::tuple);
  bool is_tuple = false;
  while (!failed()) {
    if (!e.items.empty()) expect_symbol(",");
    if (is_tuple_end(end_name)) break;
    e.items.push_back(parse_expression(with_conditional));
    if (!is_symbol(",")) break;
    is_tuple = true;
  }
  if (failed()) return 0;
  if (!is_tuple && !e.items.empty()) return e.items[0];
  if (!is_tuple && !in_parentheses) {
    fail_unexpected("an expression");
    return 0;
  }
  return add(std::move(e));
}

ExprId Parser::parse_postfix(ExprId object) {
  while (!failed()) {
    if (is_symbol(".")) {
      object = parse_attribute(object);
    } else if (is_symbol("[")) {
      object = parse_subscript(object);
    } else if (is_symbol("(")) {
      object = parse_call(object);
    } else {
      break;
    }
  }
  return object;
}

ExprId Parser::parse_filters_and_tests(ExprId object) {
  while (!failed()) {
    if (skip_symbol("|")) {
      object = parse_filter(object);
    } else if (is_name("is")) {
      object = parse_test(object);
    } else if (is_symbol("(")) {
      object = parse_call(object);
    } else {
      break;
    }
  }
  return object;
}

ExprId Parser::parse_attribute(ExprId object) {
  Expression e = make(ExprKind::attribute, {object});
  skip();
  if (current().type == TokenType::name) {
    e.constant = make_string(nullptr, Text::markup(current().text));
  } else if (current().type == TokenType::integer) {
    e.kind = ExprKind::item;
    Expression index = make(ExprKind::constant);
    index.constant = Value::integer(current().integer);
    e.items.push_back(add(std::move(index)));
  } else {
    fail(current().line, "expected a name or a number after '.'");
  }
  skip();
  return add(std::move(e));
}

/// object[index], object[start:stop:step], or several of them with commas (a tuple index).
ExprId Parser::parse_subscript(ExprId object) {
  Expression e = make(ExprKind::item, {object});
  skip();
  std::vector<ExprId> indices;
  while (!failed() && !is_symbol("]")) {
    if (!indices.empty()) expect_symbol(",");
    if (is_symbol(":")) {
      indices.push_back(-1);
    } else {
      indices.push_back(parse_expression());
    }
    if (!is_symbol(":")) continue;
    e.kind = ExprKind::slice;
    e.items.push_back(indices.back());
    for (int part = 0; part < 2; ++part) {
      const bool given = skip_symbol(":") && !is_symbol(":") && !is_symbol("]") && !is_symbol(",");
      e.items.push_back(given ? parse_expression() : -1);
    }
  }
  const int line = current().line;
  expect_symbol("]");
  if (e.kind == ExprKind::slice) {
    if (indices.size() > 1) fail(line, "slices inside a tuple index are not supported");
    return add(std::move(e));
  }
  if (indices.size() != 1) {
    for (const ExprId index : indices) {
      if (index < 0) return 0;
    }
    indices = {add(make(ExprKind::tuple, std::move(indices)))};
  }
  e.items.push_back(indices[0]);
  return add(std::move(e));
}

}  // namespace kvasir::jinja
