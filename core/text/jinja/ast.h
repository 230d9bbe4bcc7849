// A parsed template: expressions and statements in flat arrays, children by index, so that deep
// templates cost no stack when they are destroyed. Immutable after parsing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/text/jinja/value.h"

namespace kvasir::jinja {

using ExprId = int32_t;       ///< index in Ast::expressions; -1: none
using StatementId = int32_t;  ///< index in Ast::statements
using NameId = int32_t;       ///< index in Ast::names

/// Nesting of expressions and statements. jinja2 itself ends near 100 (Python's recursion).
inline constexpr int kMostNesting = 150;

enum class ExprKind : uint8_t {
  constant,
  name,
  list,
  tuple,
  dict,  ///< dict: key, value, key, value, ...
  unary,
  binary,  ///< operation
  logic_and,
  logic_or,
  logic_not,
  compare,      ///< items: n + 1 operands, operations: n
  concat,       ///< a ~ b ~ c
  conditional,  ///< test, value, otherwise (or -1)
  attribute,    ///< object.constant
  item,         ///< object[index]
  slice,        ///< object[start:stop:step], each may be -1
  call,         ///< items[0](items[1:], keywords, star, double_star)
  filter,       ///< items[0] (or -1: the block's text) | builtin(items[1:], ...)
  test,         ///< items[0] is builtin(items[1:], ...)
};

enum class Operation : uint8_t {
  none,
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  negate,
  plus,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,
};

struct Keyword {
  NameId name = -1;
  ExprId value = -1;
};

struct Expression {
  ExprKind kind = ExprKind::constant;
  Operation operation = Operation::none;
  int line = 0;
  int depth = 1;     ///< levels below and including this one
  NameId name = -1;  ///< of names, filters and tests
  Value constant;
  std::vector<ExprId> items;
  std::vector<Operation> operations;
  std::vector<Keyword> keywords;
  ExprId star = -1;
  ExprId double_star = -1;
  const Builtin* builtin = nullptr;  ///< null: unknown filter or test, an error when it runs
};

enum class StatementKind : uint8_t {
  text,  ///< literal text
  print,
  if_chain,      ///< tests[i] guards bodies[i]; one more body: else
  for_loop,      ///< target, expression, test; bodies[0], bodies[1]: else
  assign,        ///< target = expression
  assign_block,  ///< target = bodies[0] | filter
  macro,
  call_block,
  filter_block,
  with,   ///< targets[i] = tests[i] in bodies[0]
  scope,  ///< generation and block tags: bodies[0]
  break_loop,
  continue_loop,
};

/// What is assigned to: a name, an attribute of a namespace, or a tuple of targets.
struct Target {
  NameId name = -1;
  int line = 0;
  Value attribute = Value::missing();  ///< name.attribute when given
  std::vector<Target> parts;
};

struct Parameter {
  NameId name = -1;
  ExprId default_value = -1;
};

using Body = std::vector<StatementId>;

struct Statement {
  StatementKind kind = StatementKind::text;
  int line = 0;
  bool is_recursive = false;
  NameId name = -1;  ///< of macros
  Value text;
  ExprId expression = -1;
  ExprId test = -1;
  std::vector<ExprId> tests;
  std::vector<Target> targets;
  std::vector<Body> bodies;
  std::vector<Parameter> parameters;
};

struct Ast {
  std::vector<Expression> expressions;
  std::vector<Statement> statements;
  std::vector<std::string> names;
  Body body;
};

}  // namespace kvasir::jinja
