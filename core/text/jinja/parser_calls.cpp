// Calls, filters and tests.
#include "core/base/error.h"
#include "core/text/jinja/builtin.h"
#include "core/text/jinja/parser_state.h"

namespace kvasir::jinja {

void Parser::parse_arguments(Expression& call) {
  const int line = current().line;
  const auto ensure = [&](bool ok) {
    if (!ok) fail(line, "invalid syntax for a call");
  };
  expect_symbol("(");
  bool is_first = true;
  while (!failed() && !is_symbol(")")) {
    if (!is_first) expect_symbol(",");
    is_first = false;
    if (is_symbol(")")) break;
    if (skip_symbol("*")) {
      ensure(call.star < 0 && call.double_star < 0);
      call.star = parse_expression();
    } else if (skip_symbol("**")) {
      ensure(call.double_star < 0);
      call.double_star = parse_expression();
    } else if (current().type == TokenType::name && next().type == TokenType::symbol &&
               next().text == "=") {
      ensure(call.double_star < 0);
      const NameId name = name_id(current().text);
      skip();
      skip();
      call.keywords.push_back({name, parse_expression()});
    } else {
      ensure(call.star < 0 && call.double_star < 0 && call.keywords.empty());
      call.items.push_back(parse_expression());
    }
  }
  expect_symbol(")");
}

ExprId Parser::parse_call(ExprId callee) {
  Expression e = make(ExprKind::call, {callee});
  parse_arguments(e);
  return add(std::move(e));
}

std::string Parser::parse_dotted_name() {
  std::string name = expect_name();
  while (skip_symbol(".")) name += "." + expect_name();
  return name;
}

void Parser::note_unknown(const char* kind, std::string_view name, int line) {
  unknown_.push_back({line, fmt::format("unknown {} '{}'", kind, name), soft_});
}

ExprId Parser::parse_filter(ExprId input) {
  Expression e = make(ExprKind::filter, {input});
  const std::string name = parse_dotted_name();
  e.name = name_id(name);
  e.builtin = find_filter(name);
  if (e.builtin == nullptr) note_unknown("filter", name, e.line);
  if (is_symbol("(")) parse_arguments(e);
  return add(std::move(e));
}

ExprId Parser::parse_test(ExprId object) {
  Expression e = make(ExprKind::test, {object});
  skip();
  const bool is_negated = skip_name("not");
  const std::string name = parse_dotted_name();
  e.name = name_id(name);
  e.builtin = find_test(name);
  if (e.builtin == nullptr) note_unknown("test", name, e.line);
  const TokenType type = current().type;
  const bool has_operand =
      type == TokenType::string || type == TokenType::integer || type == TokenType::real ||
      is_symbol("[") || is_symbol("{") ||
      (type == TokenType::name && !is_name("else") && !is_name("or") && !is_name("and"));
  if (is_symbol("(")) {
    parse_arguments(e);
  } else if (has_operand) {
    if (is_name("is")) fail(current().line, "tests with 'is' cannot be chained");
    e.items.push_back(parse_postfix(parse_primary()));
  }
  ExprId test = add(std::move(e));
  if (is_negated) test = add(make(ExprKind::logic_not, {test}));
  return test;
}

}  // namespace kvasir::jinja
