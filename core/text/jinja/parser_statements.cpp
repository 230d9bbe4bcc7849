// Statements: what stands between {% and %}.
#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/text/jinja/parser_state.h"

namespace kvasir::jinja {
namespace {

constexpr std::string_view kUnsupportedTags[] = {"extends", "include", "import", "from",
                                                 "autoescape"};

}  // namespace

/// Statements until a tag named in `end_names` (which becomes the current token), or the end of the
/// template when there are none.
Body Parser::parse_until(std::initializer_list<std::string_view> end_names) {
  Body body;
  while (!failed()) {
    const Token& token = current();
    if (token.type == TokenType::end) {
      if (end_names.size() > 0) {
        fail(token.line,
             fmt::format("unexpected end of the template, expected '{}'", *end_names.begin()));
      }
      break;
    }
    if (token.type == TokenType::data) {
      Statement s;
      s.line = token.line;
      s.text = make_string(nullptr, Text::markup(token.text));
      skip();
      body.push_back(add(std::move(s)));
    } else if (token.type == TokenType::variable_begin) {
      skip();
      Statement s;
      s.kind = StatementKind::print;
      s.line = token.line;
      s.expression = parse_tuple(true, false);
      expect(TokenType::variable_end, "'}}'");
      body.push_back(add(std::move(s)));
    } else {
      skip();  // block_begin: the lexer makes nothing else here
      const auto is_end = [&](std::string_view name) { return is_name(name); };
      if (std::any_of(end_names.begin(), end_names.end(), is_end)) return body;
      parse_statement(body);
      expect(TokenType::block_end, "'%}'");
    }
  }
  return body;
}

/// The rest of a tag and its body, up to a tag of `end_names`.
Body Parser::parse_block_body(std::initializer_list<std::string_view> end_names) {
  skip_symbol(":");
  expect(TokenType::block_end, "'%}'");
  expected_ends_.insert(expected_ends_.end(), end_names.begin(), end_names.end());
  Body body = parse_until(end_names);
  expected_ends_.resize(expected_ends_.size() - end_names.size());
  return body;
}

void Parser::parse_statement(Body& body) {
  struct Tag {
    std::string_view name;
    StatementKind kind;
    void (Parser::*parse)(Statement&);
  };
  static constexpr Tag kTags[] = {
      {"if", StatementKind::if_chain, &Parser::parse_if},
      {"for", StatementKind::for_loop, &Parser::parse_for},
      {"set", StatementKind::assign, &Parser::parse_set},
      {"macro", StatementKind::macro, &Parser::parse_macro},
      {"call", StatementKind::call_block, &Parser::parse_call_block},
      {"filter", StatementKind::filter_block, &Parser::parse_filter_block},
      {"with", StatementKind::with, &Parser::parse_with},
      {"block", StatementKind::scope, &Parser::parse_block},
      {"generation", StatementKind::scope, &Parser::parse_block},
      {"break", StatementKind::break_loop, nullptr},
      {"continue", StatementKind::continue_loop, nullptr},
  };
  const Level level(*this);
  Statement s;
  s.line = current().line;
  if (current().type != TokenType::name) {
    fail_unexpected("the name of a tag");
    return;
  }
  const std::string name = current().text;
  if (name == "print") {
    parse_print(body);
    return;
  }
  const auto* tag = std::find_if(std::begin(kTags), std::end(kTags),
                                 [&](const Tag& t) { return t.name == name; });
  if (tag == std::end(kTags)) {
    fail_unknown_tag(name, s.line);
    return;
  }
  s.kind = tag->kind;
  if (tag->parse == nullptr && loops_ == 0) {
    fail(s.line, fmt::format("'{}' outside a loop", name));
  }
  skip();
  const bool soft = soft_;
  const int loops = loops_;
  soft_ = s.kind == StatementKind::if_chain;
  if (s.kind == StatementKind::for_loop || s.kind == StatementKind::assign) soft_ = soft;
  if (tag->parse != nullptr) (this->*tag->parse)(s);
  soft_ = soft;
  loops_ = loops;
  body.push_back(add(std::move(s)));
}

void Parser::fail_unknown_tag(const std::string& name, int line) {
  if (std::find(std::begin(kUnsupportedTags), std::end(kUnsupportedTags), name) !=
      std::end(kUnsupportedTags)) {
    fail(line, fmt::format("the tag '{}' is not supported in chat templates", name));
  } else if (!expected_ends_.empty()) {
    fail(line, fmt::format("unknown tag '{}', expected '{}' here", name, expected_ends_.back()));
  } else {
    fail(line, fmt::format("unknown tag '{}'", name));
  }
}

void Parser::parse_if(Statement& s) {
  while (!failed()) {
    s.tests.push_back(parse_tuple(false, false));
    s.bodies.push_back(parse_block_body({"endif", "elif", "else"}));
    if (skip_name("elif")) continue;
    if (skip_name("else")) {
      s.bodies.push_back(parse_block_body({"endif"}));
    }
    skip_name("endif");
    break;
  }
}

void Parser::parse_for(Statement& s) {
  s.targets.push_back(parse_target(false, "in"));
  if (!skip_name("in")) fail_unexpected("'in'");
  s.expression = parse_tuple(false, false, "recursive");
  soft_ = false;
  if (skip_name("if")) s.test = parse_expression();
  s.is_recursive = skip_name("recursive");
  ++loops_;
  s.bodies.push_back(parse_block_body({"endfor", "else"}));
  --loops_;
  if (skip_name("else")) s.bodies.push_back(parse_block_body({"endfor"}));
  skip_name("endfor");
}

void Parser::parse_set(Statement& s) {
  s.targets.push_back(parse_target(true));
  if (skip_symbol("=")) {
    s.expression = parse_tuple(true, false);
    return;
  }
  s.kind = StatementKind::assign_block;
  soft_ = false;
  if (skip_symbol("|")) {
    s.expression = parse_filter(-1);
    while (skip_symbol("|")) s.expression = parse_filter(s.expression);
  }
  s.bodies.push_back(parse_block_body({"endset"}));
  skip_name("endset");
}

void Parser::parse_signature(Statement& s) {
  expect_symbol("(");
  while (!failed() && !is_symbol(")")) {
    if (!s.parameters.empty()) expect_symbol(",");
    Parameter parameter;
    const int line = current().line;
    parameter.name = name_id(expect_name());
    if (skip_symbol("=")) {
      parameter.default_value = parse_expression();
    } else if (!s.parameters.empty() && s.parameters.back().default_value >= 0) {
      fail(line, "a parameter without a default follows one with a default");
    }
    s.parameters.push_back(parameter);
  }
  expect_symbol(")");
}

void Parser::parse_macro(Statement& s) {
  s.name = name_id(expect_name());
  parse_signature(s);
  loops_ = 0;
  s.bodies.push_back(parse_block_body({"endmacro"}));
  skip_name("endmacro");
}

void Parser::parse_call_block(Statement& s) {
  s.name = name_id("caller");
  if (is_symbol("(")) parse_signature(s);
  s.expression = parse_expression();
  if (!failed() && ast_->expressions[static_cast<size_t>(s.expression)].kind != ExprKind::call) {
    fail(s.line, "a call block needs a call");
  }
  loops_ = 0;
  s.bodies.push_back(parse_block_body({"endcall"}));
  skip_name("endcall");
}

void Parser::parse_filter_block(Statement& s) {
  s.expression = parse_filter(-1);
  while (skip_symbol("|")) s.expression = parse_filter(s.expression);
  s.bodies.push_back(parse_block_body({"endfilter"}));
  skip_name("endfilter");
}

void Parser::parse_with(Statement& s) {
  while (!failed() && current().type != TokenType::block_end) {
    if (!s.targets.empty()) expect_symbol(",");
    s.targets.push_back(parse_target(false));
    expect_symbol("=");
    s.tests.push_back(parse_expression());
  }
  s.bodies.push_back(parse_block_body({"endwith"}));
  skip_name("endwith");
}

/// {% generation %} marks what assistants wrote (Hugging Face); {% block name %}. Both only scope.
void Parser::parse_block(Statement& s) {
  if (current().type == TokenType::block_end) {
    s.bodies.push_back(parse_block_body({"endgeneration"}));
    skip_name("endgeneration");
    return;
  }
  const std::string name = expect_name();
  skip_name("scoped");
  skip_name("required");
  s.bodies.push_back(parse_block_body({"endblock"}));
  skip_name("endblock");
  skip_name(name);
}

/// {% print a, b %}
void Parser::parse_print(Body& body) {
  skip();
  bool is_first = true;
  while (!failed() && current().type != TokenType::block_end) {
    if (!is_first) expect_symbol(",");
    is_first = false;
    Statement s;
    s.kind = StatementKind::print;
    s.line = current().line;
    s.expression = parse_expression();
    body.push_back(add(std::move(s)));
  }
}

Target Parser::parse_single_target(bool with_namespace) {
  const Level level(*this);
  Target target;
  target.line = current().line;
  if (skip_symbol("(")) {
    target = parse_target(with_namespace);
    expect_symbol(")");
    return target;
  }
  const std::string name = expect_name();
  static constexpr std::string_view kConstants[] = {"true", "false", "none",
                                                    "True", "False", "None"};
  if (std::find(std::begin(kConstants), std::end(kConstants), name) != std::end(kConstants)) {
    fail(target.line, fmt::format("cannot assign to '{}'", name));
  }
  if (name == "loop" && !with_namespace) fail(target.line, "cannot assign to 'loop'");
  target.name = name_id(name);
  if (with_namespace && skip_symbol(".")) {
    target.attribute = make_string(nullptr, Text::markup(expect_name()));
  }
  return target;
}

/// A name, a namespace's attribute where allowed, or several with commas.
Target Parser::parse_target(bool with_namespace, std::string_view end_name) {
  Target first = parse_single_target(with_namespace);
  if (!is_symbol(",")) return first;
  Target tuple;
  tuple.line = first.line;
  tuple.parts.push_back(std::move(first));
  while (!failed() && skip_symbol(",")) {
    const bool at_end = is_symbol("=") || is_symbol(")") ||
                        current().type == TokenType::block_end ||
                        (!end_name.empty() && is_name(end_name));
    if (at_end) break;
    tuple.parts.push_back(parse_single_target(with_namespace));
  }
  return tuple;
}

}  // namespace kvasir::jinja
