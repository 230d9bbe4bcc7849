#include "core/text/jinja/parser.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/text/jinja/parser_state.h"

namespace kvasir::jinja {
namespace {

std::string described(const Token& token) {
  switch (token.type) {
    case TokenType::data:
      return "template text";
    case TokenType::block_begin:
      return "begin of a statement";
    case TokenType::block_end:
      return "end of a statement";
    case TokenType::variable_begin:
      return "begin of an expression";
    case TokenType::variable_end:
      return "end of an expression";
    case TokenType::string:
      return "a string";
    case TokenType::end:
      return "end of the template";
    default:
      return fmt::format("'{}'", token.text.substr(0, 60));
  }
}

}  // namespace

Parser::Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

bool Parser::is_symbol(std::string_view symbol) const {
  return current().type == TokenType::symbol && current().text == symbol;
}

bool Parser::is_name(std::string_view name) const {
  return current().type == TokenType::name && current().text == name;
}

bool Parser::skip_symbol(std::string_view symbol) {
  if (!is_symbol(symbol)) return false;
  skip();
  return true;
}

bool Parser::skip_name(std::string_view name) {
  if (!is_name(name)) return false;
  skip();
  return true;
}

void Parser::expect_symbol(std::string_view symbol) {
  if (!skip_symbol(symbol)) fail_unexpected(fmt::format("'{}'", symbol));
}

void Parser::expect(TokenType type, std::string_view what) {
  if (current().type != type) {
    fail_unexpected(what);
    return;
  }
  skip();
}

std::string Parser::expect_name() {
  if (current().type != TokenType::name) {
    fail_unexpected("a name");
    return {};
  }
  std::string name = current().text;
  skip();
  return name;
}

void Parser::fail(int line, std::string_view what) {
  if (failed_) return;
  failed_ = true;
  error_ = make_error(ErrorCode::invalid_argument, "line {}: {}", line, what);
  at_ = tokens_.size() - 1;
}

void Parser::fail_unexpected(std::string_view expected) {
  const std::string wanted = expected.empty() ? "" : fmt::format(", expected {}", expected);
  fail(current().line, fmt::format("unexpected {}{}", described(current()), wanted));
}

NameId Parser::name_id(std::string_view name) {
  const auto found = name_ids_.find(name);
  if (found != name_ids_.end()) return found->second;
  const auto id = static_cast<NameId>(ast_->names.size());
  ast_->names.emplace_back(name);
  name_ids_.emplace(name, id);
  return id;
}

Expression Parser::make(ExprKind kind, std::vector<ExprId> items) const {
  Expression e;
  e.kind = kind;
  e.line = current().line;
  e.items = std::move(items);
  return e;
}

ExprId Parser::add(Expression e) {
  if (failed()) return 0;
  const auto below = [&](ExprId child) {
    if (child >= 0)
      e.depth = std::max(e.depth, 1 + ast_->expressions[static_cast<size_t>(child)].depth);
  };
  for (const ExprId child : e.items) below(child);
  for (const Keyword& keyword : e.keywords) below(keyword.value);
  below(e.star);
  below(e.double_star);
  if (e.depth > kMostNesting) {
    fail(e.line, "the expression is nested too deeply");
    return 0;
  }
  ast_->expressions.push_back(std::move(e));
  return static_cast<ExprId>(ast_->expressions.size()) - 1;
}

StatementId Parser::add(Statement statement) {
  ast_->statements.push_back(std::move(statement));
  return static_cast<StatementId>(ast_->statements.size()) - 1;
}

Result<std::shared_ptr<const Ast>> Parser::run() {
  ast_->body = parse_until({});
  for (const Unknown& unknown : unknown_) {
    if (!unknown.is_soft) fail(unknown.line, unknown.message);
  }
  if (failed()) return error_;
  return std::shared_ptr<const Ast>(std::move(ast_));
}

Result<std::shared_ptr<const Ast>> parse_template(std::string_view source) {
  auto tokens = tokenize_template(source);
  if (!tokens) return std::move(tokens).error();
  return Parser(std::move(*tokens)).run();
}

}  // namespace kvasir::jinja
