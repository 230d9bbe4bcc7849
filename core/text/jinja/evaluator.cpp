// Statements.
#include "core/text/jinja/evaluator.h"

#include <algorithm>

#include "core/text/jinja/evaluator_scopes.h"
#include "core/text/jinja/repr.h"

namespace kvasir::jinja {

Evaluator::Evaluator(const Ast& ast, Context& context, Clock clock)
    : ast_(ast), context_(context), clock_(std::move(clock)), scope_(std::make_shared<Scope>()) {
  loop_name_ = find_name("loop");
  varargs_name_ = find_name("varargs");
  kwargs_name_ = find_name("kwargs");
  caller_name_ = find_name("caller");
}

Evaluator::~Evaluator() = default;

NameId Evaluator::find_name(std::string_view name) const {
  const auto found = std::find(ast_.names.begin(), ast_.names.end(), name);
  return found == ast_.names.end() ? -1 : static_cast<NameId>(found - ast_.names.begin());
}

void Evaluator::set_variable(std::string_view name, Value value) {
  if (const NameId id = find_name(name); id >= 0) set(id, value);
}

void Evaluator::set(NameId name, const Value& value) {
  for (auto& [other, old] : scope_->variables) {
    if (other == name) {
      old = value;
      return;
    }
  }
  // A vector that doubles holds at most 3 times its entries while it moves.
  constexpr int64_t kBytes = 3 * sizeof(std::pair<NameId, Value>);
  if (!context_.take_bytes(kBytes)) return;
  if (scope_->variables.empty()) {
    const auto scope_charge = std::move(scope_->charge);
    scope_->charge = Charge(&context_, 0);
  }
  scope_->charge.add(kBytes);
  scope_->variables.emplace_back(name, value);
}

const Value* Evaluator::find_variable(NameId name) const {
  for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get()) {
    for (const auto& [other, value] : scope->variables) {
      if (other == name) return &value;
    }
  }
  return nullptr;
}

Namespace* Evaluator::new_namespace() {
  if (!context_.take_bytes(sizeof(Namespace) + 64)) return nullptr;
  namespaces_.push_back(std::make_unique<Namespace>());
  return namespaces_.back().get();
}

Cycler* Evaluator::new_cycler() {
  if (!context_.take_bytes(sizeof(Cycler) + 64)) return nullptr;
  cyclers_.push_back(std::make_unique<Cycler>());
  return cyclers_.back().get();
}

void Evaluator::run(TextBuilder& out) {
  out_ = &out;
  execute(ast_.body);
}

Evaluator::Flow Evaluator::execute(const Body& body) {
  for (const StatementId id : body) {
    const Flow flow = execute(ast_.statements[static_cast<size_t>(id)]);
    if (context_.failed()) return Flow::break_loop;
    if (flow != Flow::next) return flow;
  }
  return Flow::next;
}

Evaluator::Flow Evaluator::execute(const Statement& s) {
  const Nested nested(context_);
  if (!nested || !context_.step()) return Flow::break_loop;
  context_.set_line(s.line);
  switch (s.kind) {
    case StatementKind::text:
      out_->append(s.text.text());
      break;
    case StatementKind::print:
      append_str(*out_, evaluate(s.expression));
      break;
    case StatementKind::if_chain:
      return execute_if(s);
    case StatementKind::for_loop:
      return execute_for(s);
    case StatementKind::assign:
      execute_assign(s);
      break;
    case StatementKind::assign_block:
      return execute_assign_block(s);
    case StatementKind::macro:
      define_macro(s);
      break;
    case StatementKind::call_block:
      execute_call_block(s);
      break;
    case StatementKind::filter_block:
      return execute_filter_block(s);
    case StatementKind::with:
      return execute_with(s);
    case StatementKind::scope: {
      const Inner inner(*this);
      return execute(s.bodies[0]);
    }
    case StatementKind::break_loop:
      return Flow::break_loop;
    case StatementKind::continue_loop:
      return Flow::continue_loop;
  }
  return Flow::next;
}

Evaluator::Flow Evaluator::execute_if(const Statement& s) {
  for (size_t i = 0; i < s.tests.size(); ++i) {
    const bool holds = truth(evaluate(s.tests[i]));
    if (context_.failed()) return Flow::break_loop;
    if (holds) return execute(s.bodies[i]);
  }
  return s.bodies.size() > s.tests.size() ? execute(s.bodies.back()) : Flow::next;
}

Evaluator::Flow Evaluator::execute_for(const Statement& s) {
  const Value iterable = evaluate(s.expression);
  return context_.failed() ? Flow::break_loop : run_loop(s, iterable, 0);
}

/// Keeps the items for which the loop's `if` holds.
bool Evaluator::filter_items(const Statement& s, std::vector<Value>& items) {
  size_t kept = 0;
  Inner inner(*this);
  for (size_t i = 0; i < items.size(); ++i) {
    inner.renew();
    assign(s.targets[0], items[i]);
    const bool keep = truth(evaluate(s.test));
    if (context_.failed()) return false;
    if (!keep) continue;
    if (kept != i) items[kept] = std::move(items[i]);
    ++kept;
  }
  items.resize(kept);
  return true;
}

Evaluator::Flow Evaluator::run_loop(const Statement& s, const Value& iterable, int depth) {
  auto owned = std::make_unique<Loop>();
  Loop& loop = *owned;
  loop.depth = depth;
  loop.statement = &s;
  loop.scope = s.is_recursive ? scope_ : nullptr;
  if (!iterate(iterable, loop.items)) return Flow::break_loop;
  const auto bytes = static_cast<int64_t>(loop.items.capacity() * sizeof(Value) + sizeof(Loop));
  if (!context_.take_bytes(bytes)) return Flow::break_loop;
  const Charge charge(&context_, bytes);
  if (s.test >= 0 && !filter_items(s, loop.items)) return Flow::break_loop;
  if (loop.items.empty()) {
    if (s.bodies.size() < 2) return Flow::next;
    const Inner inner(*this);
    return execute(s.bodies[1]);
  }
  // A template that never says `loop` cannot keep a pointer to it: then it dies here.
  const bool is_visible = loop_name_ >= 0;
  Inner inner(*this);
  for (; loop.index < loop.items.size(); ++loop.index) {
    if (!context_.step()) break;
    inner.renew();
    if (is_visible) set(loop_name_, Value(&loop));
    assign(s.targets[0], loop.items[loop.index]);
    const Flow flow = execute(s.bodies[0]);
    if (context_.failed() || flow == Flow::break_loop) break;
  }
  if (is_visible) {  // someone may still hold it, in a namespace or a macro
    loop.items.clear();
    loop.items.shrink_to_fit();
    loop.index = 0;
    context_.take_bytes(sizeof(Loop) + 48);
    loops_.push_back(std::move(owned));
  }
  return Flow::next;
}

void Evaluator::execute_assign(const Statement& s) {
  const Target& target = s.targets[0];
  if (!can_assign(target)) return;
  const Value value = evaluate(s.expression);
  context_.set_line(s.line);
  assign(target, value);
}

/// Attributes can be set on namespaces only; checked before the value is evaluated.
bool Evaluator::can_assign(const Target& target) {
  for (const Target& part : target.parts) {
    if (!can_assign(part)) return false;
  }
  if (target.attribute.is(Type::missing)) return true;
  const Value* space = find_variable(target.name);
  if (space != nullptr && space->is(Type::space)) return true;
  context_.fail("cannot assign attribute '{}' on '{}', which is no namespace",
                target.attribute.bytes(), name_of(target.name));
  return false;
}

void Evaluator::assign(const Target& target, const Value& value) {
  if (context_.failed()) return;
  if (target.parts.empty()) {
    if (target.attribute.is(Type::missing)) {
      set(target.name, value);
    } else {
      assign_attribute(target, value);
    }
    return;
  }
  std::vector<Value> items;
  if (!iterate(value, items)) return;
  if (items.size() != target.parts.size()) {
    context_.fail("cannot unpack {} values into {} names", items.size(), target.parts.size());
    return;
  }
  for (size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i]);
}

void Evaluator::assign_attribute(const Target& target, const Value& value) {
  const Value* found = find_variable(target.name);
  if (found == nullptr || !found->is(Type::space)) return;  // can_assign() saw to it
  Namespace& space = *found->space();
  const std::string_view name = target.attribute.bytes();
  if (name.starts_with('_')) {
    context_.fail("a namespace cannot hold '{}': names with an underscore first are refused", name);
    return;
  }
  if (Value* old = space.find(name)) {
    *old = value;
    return;
  }
  if (!context_.take_bytes(3 * 2 * sizeof(Value))) return;
  space.items.emplace_back(target.attribute, value);
}

Value Evaluator::filtered(ExprId filter, const Value& text) {
  if (filter < 0) return text;
  const Expression& e = expression(filter);
  const Value input = filtered(e.items[0], text);
  return context_.failed() ? Value() : evaluate_builtin(e, input);
}

Evaluator::Flow Evaluator::execute_assign_block(const Statement& s) {
  Value text;
  {
    const Inner inner(*this);
    Capture capture(*this);
    const Flow flow = execute(s.bodies[0]);
    if (context_.failed() || flow != Flow::next) return flow;
    text = filtered(s.expression, capture.take());
  }
  if (can_assign(s.targets[0])) assign(s.targets[0], text);
  return Flow::next;
}

Evaluator::Flow Evaluator::execute_filter_block(const Statement& s) {
  const Inner inner(*this);
  Value text;
  {
    Capture capture(*this);
    const Flow flow = execute(s.bodies[0]);
    if (context_.failed() || flow != Flow::next) return flow;
    text = capture.take();
  }
  append_str(*out_, filtered(s.expression, text));
  return Flow::next;
}

Evaluator::Flow Evaluator::execute_with(const Statement& s) {
  std::vector<Value> values;
  for (const ExprId value : s.tests) values.push_back(evaluate(value));
  const Inner inner(*this);
  for (size_t i = 0; i < values.size(); ++i) assign(s.targets[i], values[i]);
  return context_.failed() ? Flow::break_loop : execute(s.bodies[0]);
}

void Evaluator::define_macro(const Statement& s) {
  if (!context_.take_bytes(sizeof(Macro) + 64)) return;
  macros_.push_back(std::make_unique<Macro>());
  Macro* macro = macros_.back().get();
  macro->definition = &s;
  macro->scope = scope_;
  set(s.name, Value(macro));
}

void Evaluator::execute_call_block(const Statement& s) {
  if (!context_.take_bytes(sizeof(Macro) + 64)) return;
  macros_.push_back(std::make_unique<Macro>());
  Macro* body = macros_.back().get();
  body->definition = &s;
  body->scope = scope_;
  const Value caller(body);
  append_str(*out_, evaluate_call(expression(s.expression), &caller));
}

}  // namespace kvasir::jinja
