// Runs a parsed template.
#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/jinja/ast.h"
#include "core/text/jinja/builtin.h"
#include "core/text/jinja/mutable_values.h"
#include "core/text/jinja/value.h"

namespace kvasir::jinja {

/// Variables of a for, macro, with or the whole template; names not found here are looked up in the
/// parent.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<NameId, Value>> variables;
  Charge charge;
};

/// The time that strftime_now shows.
using Clock = std::function<std::tm()>;

/// One rendering. Owns the values that change; used by one thread, once.
class Evaluator {
 public:
  Evaluator(const Ast& ast, Context& context, Clock clock);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  /// Does the template mention this name at all? If not, its value need not be made.
  bool uses(std::string_view name) const { return find_name(name) >= 0; }
  void set_variable(std::string_view name, Value value);
  /// Renders into `out`; errors stay in the context.
  void run(TextBuilder& out);

  // For builtins.
  Context& context() { return context_; }
  std::tm now() const { return clock_(); }
  Value get_item(const Value& object, const Value& key);
  Value get_attribute(const Value& object, const Value& name);
  Value call(const Value& callee, Arguments arguments);
  /// Calls a builtin; `kind` ("filter", ...) is for messages.
  Value call_builtin(const Builtin& builtin, const char* kind, const Value& self,
                     Arguments& arguments);
  /// Appends what a for loop over `value` would see. An error when it cannot be iterated.
  bool iterate(const Value& value, std::vector<Value>& items);
  /// Can a for loop go over it?
  static bool is_iterable(const Value& value);
  Namespace* new_namespace();
  Cycler* new_cycler();

 private:
  enum class Flow { next, break_loop, continue_loop };

  // Expressions.
  Value evaluate(ExprId id);
  Value evaluate_name(const Expression& e);
  Value evaluate_items(const Expression& e);
  Value evaluate_dict(const Expression& e);
  Value evaluate_logic(const Expression& e);
  Value evaluate_compare(const Expression& e);
  Value evaluate_concat(const Expression& e);
  Value evaluate_conditional(const Expression& e);
  Value evaluate_slice(const Expression& e);
  Value evaluate_call(const Expression& e, const Value* caller = nullptr);
  Value evaluate_builtin(const Expression& e, const Value& input);
  Arguments evaluate_arguments(const Expression& e, size_t first);
  void spread_arguments(const Expression& e, Arguments& arguments);
  bool bind(const Builtin& builtin, const char* kind, Arguments& arguments);
  Value method_or_unsafe(const Value& object, const Value& name, bool& found);
  Value special_attribute(const Value& object, std::string_view name, bool& found);
  Value loop_attribute(Loop& loop, std::string_view name, bool& found);
  Value call_macro(const Macro& macro, Arguments& arguments);
  void bind_macro(const Statement& definition, Arguments& arguments);
  void bind_rest(const Statement& definition, Arguments& arguments, size_t n_used);
  Value call_loop(Loop& loop, Arguments& arguments);

  // Statements.
  Flow execute(const Body& body);
  Flow execute(const Statement& s);
  Flow execute_if(const Statement& s);
  Flow execute_for(const Statement& s);
  Flow run_loop(const Statement& s, const Value& iterable, int depth);
  bool filter_items(const Statement& s, std::vector<Value>& items);
  void execute_assign(const Statement& s);
  Flow execute_assign_block(const Statement& s);
  Flow execute_with(const Statement& s);
  Flow execute_filter_block(const Statement& s);
  void execute_call_block(const Statement& s);
  void define_macro(const Statement& s);
  Value filtered(ExprId filter, const Value& text);
  void assign(const Target& target, const Value& value);
  void assign_attribute(const Target& target, const Value& value);
  bool can_assign(const Target& target);
  void set(NameId name, const Value& value);
  const Value* find_variable(NameId name) const;
  NameId find_name(std::string_view name) const;
  const Expression& expression(ExprId id) const {
    return ast_.expressions[static_cast<size_t>(id)];
  }
  const std::string& name_of(NameId id) const { return ast_.names[static_cast<size_t>(id)]; }

  class Inner;    // a scope inside the current one
  class Capture;  // output into a string

  const Ast& ast_;
  Context& context_;
  Clock clock_;
  TextBuilder* out_ = nullptr;
  std::shared_ptr<Scope> scope_;
  std::vector<std::unique_ptr<Namespace>> namespaces_;
  std::vector<std::unique_ptr<Macro>> macros_;
  std::vector<std::unique_ptr<Loop>> loops_;
  std::vector<std::unique_ptr<Cycler>> cyclers_;
  NameId loop_name_, varargs_name_, kwargs_name_, caller_name_;
};

}  // namespace kvasir::jinja
