// The parser's inside, shared by its files (expressions, calls, statements).
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/jinja/ast.h"
#include "core/text/jinja/lexer.h"

namespace kvasir::jinja {

/// Recursive descent, at most kMostNesting levels. The first error stays; after it the current
/// token is the end, so that every loop ends.
class Parser {
 public:
  explicit Parser(std::vector<Token> tokens);
  Result<std::shared_ptr<const Ast>> run();

 private:
  class Level;

  // Tokens.
  const Token& current() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  void skip() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool is_symbol(std::string_view symbol) const;
  bool is_name(std::string_view name) const;
  bool skip_symbol(std::string_view symbol);
  bool skip_name(std::string_view name);
  void expect_symbol(std::string_view symbol);
  void expect(TokenType type, std::string_view what);
  std::string expect_name();
  bool failed() const { return failed_; }
  void fail(int line, std::string_view what);
  void fail_unexpected(std::string_view expected);
  NameId name_id(std::string_view name);
  ExprId add(Expression expression);
  Expression make(ExprKind kind, std::vector<ExprId> items = {}) const;
  StatementId add(Statement statement);

  // Expressions.
  ExprId parse_expression(bool with_conditional = true);
  ExprId parse_binary(int level);
  ExprId parse_not();
  ExprId parse_compare();
  ExprId parse_concat();
  ExprId parse_unary(bool with_filters);
  ExprId parse_primary();
  ExprId parse_constant(Value value);
  ExprId parse_list();
  ExprId parse_dict();
  ExprId parse_tuple(bool with_conditional, bool in_parentheses, std::string_view end_name = {});
  bool is_tuple_end(std::string_view end_name) const;
  ExprId parse_postfix(ExprId object);
  ExprId parse_filters_and_tests(ExprId object);
  ExprId parse_subscript(ExprId object);
  ExprId parse_attribute(ExprId object);
  void parse_arguments(Expression& call);
  ExprId parse_call(ExprId callee);
  ExprId parse_filter(ExprId input);
  ExprId parse_test(ExprId object);
  std::string parse_dotted_name();
  void note_unknown(const char* kind, std::string_view name, int line);

  // Statements.
  Body parse_until(std::initializer_list<std::string_view> end_names);
  Body parse_block_body(std::initializer_list<std::string_view> end_names);
  void parse_statement(Body& body);
  void parse_if(Statement& s);
  void parse_for(Statement& s);
  void parse_set(Statement& s);
  void parse_macro(Statement& s);
  void parse_call_block(Statement& s);
  void parse_filter_block(Statement& s);
  void parse_with(Statement& s);
  void parse_block(Statement& s);
  void parse_print(Body& body);
  void parse_signature(Statement& s);
  Target parse_target(bool with_namespace, std::string_view end_name = {});
  Target parse_single_target(bool with_namespace);
  void fail_unknown_tag(const std::string& name, int line);

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
  int loops_ = 0;      // for statements around, inside this macro
  bool soft_ = false;  // inside an if: unknown filters are errors only when they run
  std::vector<std::string_view> expected_ends_;
  bool failed_ = false;
  Error error_;
  struct Unknown {
    int line;
    std::string message;
    bool is_soft;
  };
  std::vector<Unknown> unknown_;
  std::map<std::string, NameId, std::less<>> name_ids_;
  std::shared_ptr<Ast> ast_ = std::make_shared<Ast>();
};

/// A level of nesting in the parser.
class Parser::Level {
 public:
  explicit Level(Parser& parser) : parser_(parser) {
    if (++parser_.nesting_ > kMostNesting) {
      parser_.fail(parser_.current().line, "the template is nested too deeply");
    }
  }
  ~Level() { --parser_.nesting_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  Parser& parser_;
};

}  // namespace kvasir::jinja
