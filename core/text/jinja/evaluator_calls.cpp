// Attributes, items, iteration and calls.
#include <algorithm>

#include "core/text/jinja/evaluator.h"
#include "core/text/jinja/evaluator_scopes.h"
#include "core/text/jinja/operators.h"
#include "core/text/jinja/repr.h"
#include "core/text/jinja/unicode.h"

namespace kvasir::jinja {
namespace {

bool use_undefined(Context& context, const Value& value) {
  const auto* why = value.undefined_object();
  context.fail("{}", why != nullptr ? why->message : "a value is undefined");
  return false;
}

}  // namespace

/// A method of the object, or the undefined that the sandbox gives for what it hides.
Value Evaluator::method_or_unsafe(const Value& object, const Value& name, bool& found) {
  const std::string_view text = name.bytes();
  const Method method = find_method(object, text);
  const bool is_internal = text.size() > 4 && text.starts_with("__") && text.ends_with("__");
  found = method.builtin != nullptr || method.is_unsafe || is_internal;
  if (method.is_unsafe || is_internal) {
    return make_undefined(context_, fmt::format("access to attribute '{}' of '{}' object is unsafe",
                                                shortened(text), type_name(object)));
  }
  return found ? make_method(context_, object, method.builtin) : Value();
}

Value Evaluator::loop_attribute(Loop& loop, std::string_view name, bool& found) {
  const auto n = static_cast<int64_t>(loop.items.size());
  const auto i = static_cast<int64_t>(loop.index);
  found = true;
  if (name == "index") return Value::integer(i + 1);
  if (name == "index0") return Value::integer(i);
  if (name == "revindex") return Value::integer(n - i);
  if (name == "revindex0") return Value::integer(n - i - 1);
  if (name == "first") return Value::boolean(i == 0);
  if (name == "last") return Value::boolean(i + 1 >= n);
  if (name == "length") return Value::integer(n);
  if (name == "depth") return Value::integer(loop.depth + 1);
  if (name == "depth0") return Value::integer(loop.depth);
  if (name == "previtem") {
    return i > 0 && i <= n ? loop.items[loop.index - 1]
                           : make_undefined(context_, "there is no previous item");
  }
  if (name == "nextitem") {
    return i + 1 < n ? loop.items[loop.index + 1]
                     : make_undefined(context_, "there is no next item");
  }
  found = false;
  return {};
}

/// Attributes of things that are no containers.
Value Evaluator::special_attribute(const Value& object, std::string_view name, bool& found) {
  found = false;
  if (object.is(Type::loop)) return loop_attribute(*object.loop(), name, found);
  if (object.is(Type::space)) {
    const Value* value = object.space()->find(name);
    found = value != nullptr;
    return found ? *value : Value();
  }
  if (object.is(Type::macro) && name == "name") {
    found = true;
    return make_markup(context_, name_of(object.macro()->definition->name));
  }
  if (object.is(Type::tuple) && kGroupName == object.sequence().type_name &&
      (name == "grouper" || name == "list")) {
    found = true;
    return object.sequence().items[name == "grouper" ? 0 : 1];
  }
  if (object.is(Type::cycler) && name == "current") {
    found = true;
    return object.cycler()->items[object.cycler()->position];
  }
  return {};
}

Value Evaluator::get_attribute(const Value& object, const Value& name) {
  bool found = false;
  if (object.is_undefined() && name.bytes() != "__class__") {
    return use_undefined(context_, object), Value();
  }
  Value value = special_attribute(object, name.bytes(), found);
  if (found) return value;
  value = method_or_unsafe(object, name, found);
  if (found) return value;
  if (object.is(Type::dict)) {
    if (const Value* item = lookup(context_, object.dict(), name)) return *item;
  }
  return missing_attribute(context_, object, name);
}

Value Evaluator::get_item(const Value& object, const Value& key) {
  if (object.is_undefined()) return use_undefined(context_, object), Value();
  if (object.is(Type::dict)) {
    if (const Value* item = lookup(context_, object.dict(), key)) return *item;
  } else if (key.is_integral()) {
    bool found = false;
    Value item = item_at(context_, object, key.as_integer(), found);
    if (found) return item;
  }
  if (key.is(Type::string)) {
    bool found = false;
    Value value = special_attribute(object, key.bytes(), found);
    if (found) return value;
    value = method_or_unsafe(object, key, found);
    if (found) return value;
  }
  return missing_attribute(context_, object, key);
}

bool Evaluator::is_iterable(const Value& value) {
  return value.is_undefined() || value.is(Type::string) || value.has_items() ||
         value.is(Type::dict) || value.is(Type::range) || value.is(Type::loop);
}

bool Evaluator::iterate(const Value& value, std::vector<Value>& items) {
  if (context_.failed()) return false;
  const int64_t length = std::max<int64_t>(length_of(value), 0);
  if (value.has_items()) {
    const auto& source = value.sequence();
    if (!source.deferred_error.empty()) {
      context_.fail("{}", source.deferred_error);
      return false;
    }
    if (value.is(Type::generator) && std::exchange(source.consumed, true)) return true;
    if (!take_items(context_, source.items.size())) return false;
    items.insert(items.end(), source.items.begin(), source.items.end());
    return true;
  }
  if (!take_items(context_, static_cast<size_t>(length))) return false;
  items.reserve(items.size() + static_cast<size_t>(length));
  switch (value.type()) {
    case Type::undefined:
      return true;
    case Type::dict:
      for (const auto& [key, item] : value.dict().items) items.push_back(key);
      return true;
    case Type::range:
      if (!context_.step(length / 4)) return false;
      for (int64_t i = 0; i < length; ++i) items.push_back(Value::integer(value.range()[i]));
      return true;
    case Type::string: {
      const Text& text = value.text();
      for (size_t at = 0; at < text.bytes.size();) {
        const size_t n = character_at(text.bytes, at).n_bytes;
        if (!context_.step()) return false;
        items.push_back(substring(context_, text, at, at + n));
        at += n;
      }
      return !context_.failed();
    }
    default:
      context_.fail("'{}' object is not iterable", type_name(value));
      return false;
  }
}

Value Evaluator::call(const Value& callee, Arguments arguments) {
  const Nested nested(context_);
  if (!nested || !context_.step()) return {};
  switch (callee.type()) {
    case Type::undefined:
      return use_undefined(context_, callee), Value();
    case Type::function:
      return call_builtin(*callee.function(), "function", Value(), arguments);
    case Type::method:
      return call_builtin(*callee.method().builtin, "method", callee.method().self, arguments);
    case Type::macro:
      return call_macro(*callee.macro(), arguments);
    case Type::loop:
      return call_loop(*callee.loop(), arguments);
    case Type::joiner: {
      Cycler& joiner = *callee.cycler();
      return joiner.position++ == 0 ? make_markup(context_, "") : joiner.items[0];
    }
    default:
      context_.fail("'{}' object is not callable", type_name(callee));
      return {};
  }
}

Value Evaluator::call_builtin(const Builtin& builtin, const char* kind, const Value& self,
                              Arguments& arguments) {
  if (!builtin.takes_any && !bind(builtin, kind, arguments)) return {};
  return builtin.function(*this, self, arguments);
}

/// Keyword arguments go to their places.
bool Evaluator::bind(const Builtin& builtin, const char* kind, Arguments& arguments) {
  size_t n_parameters = 0;
  while (n_parameters < builtin.parameters.size() && !builtin.parameters[n_parameters].empty()) {
    ++n_parameters;
  }
  auto& positional = arguments.positional;
  if (positional.size() > n_parameters) {
    context_.fail("{} '{}' takes at most {} arguments, not {}", kind, builtin.name, n_parameters,
                  positional.size());
    return false;
  }
  positional.resize(n_parameters, Value::missing());
  for (const auto& [name, value] : arguments.keywords) {
    size_t i = 0;
    while (i < n_parameters && builtin.parameters[i] != name.bytes()) ++i;
    if (i == n_parameters || !positional[i].is(Type::missing)) {
      context_.fail("{} '{}' got the argument '{}' {}", kind, builtin.name, shortened(name.bytes()),
                    i == n_parameters ? "that it does not know" : "twice");
      return false;
    }
    positional[i] = value;
  }
  arguments.keywords.clear();
  for (size_t i = 0; i < static_cast<size_t>(builtin.n_required); ++i) {
    if (!positional[i].is(Type::missing)) continue;
    context_.fail("{} '{}' needs the argument '{}'", kind, builtin.name, builtin.parameters[i]);
    return false;
  }
  return true;
}

Value Evaluator::call_macro(const Macro& macro, Arguments& arguments) {
  const Statement& definition = *macro.definition;
  const Inner inner(*this, macro.scope);
  Capture capture(*this);
  bind_macro(definition, arguments);
  if (context_.failed()) return {};
  execute(definition.bodies[0]);
  return context_.failed() ? Value() : capture.take();
}

void Evaluator::bind_macro(const Statement& definition, Arguments& arguments) {
  const auto& parameters = definition.parameters;
  auto& keywords = arguments.keywords;
  for (size_t i = 0; i < parameters.size() && !context_.failed(); ++i) {
    const std::string& name = name_of(parameters[i].name);
    const auto keyword = std::find_if(keywords.begin(), keywords.end(),
                                      [&](const auto& k) { return k.first.bytes() == name; });
    const bool is_positional = i < arguments.positional.size();
    if (keyword != keywords.end() && is_positional) {
      context_.fail("macro '{}' got the argument '{}' twice", name_of(definition.name), name);
    } else if (is_positional) {
      set(parameters[i].name, arguments.positional[i]);
    } else if (keyword != keywords.end()) {
      set(parameters[i].name, keyword->second);
      keywords.erase(keyword);
    } else if (parameters[i].default_value >= 0) {
      set(parameters[i].name, evaluate(parameters[i].default_value));
    } else {
      set(parameters[i].name,
          make_undefined(context_, fmt::format("parameter '{}' was not provided", name)));
    }
  }
  bind_rest(definition, arguments, parameters.size());
}

/// `caller`, `kwargs` and `varargs`; an error for arguments that nobody can see.
void Evaluator::bind_rest(const Statement& definition, Arguments& arguments, size_t n_used) {
  DictBuilder kwargs(context_);
  const auto has_parameter = [&](NameId name) {
    return std::any_of(definition.parameters.begin(), definition.parameters.end(),
                       [&](const Parameter& p) { return p.name == name; });
  };
  bool has_caller = false;
  for (const auto& [name, value] : arguments.keywords) {
    if (name.bytes() == "caller" && caller_name_ >= 0) {
      set(caller_name_, value);
      has_caller = true;
    } else if (kwargs_name_ >= 0) {
      kwargs.set(name, value);
    } else {
      context_.fail("macro '{}' takes no keyword argument '{}'", name_of(definition.name),
                    shortened(name.bytes()));
    }
  }
  if (!has_caller && caller_name_ >= 0 && !has_parameter(caller_name_)) {
    set(caller_name_, make_undefined(context_, "No caller defined"));
  }
  if (kwargs_name_ >= 0 && !has_parameter(kwargs_name_)) set(kwargs_name_, kwargs.finish());
  auto& positional = arguments.positional;
  if (positional.size() > n_used && varargs_name_ < 0) {
    context_.fail("macro '{}' takes not more than {} arguments", name_of(definition.name), n_used);
  }
  if (varargs_name_ < 0 || has_parameter(varargs_name_)) return;
  positional.erase(positional.begin(), positional.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                n_used, positional.size())));
  set(varargs_name_, make_sequence(&context_, Type::tuple, std::move(positional)));
}

/// loop(children) in a recursive loop.
Value Evaluator::call_loop(Loop& loop, Arguments& arguments) {
  if (loop.scope == nullptr || arguments.positional.size() != 1) {
    context_.fail("only a loop marked 'recursive' can be called, with one argument");
    return {};
  }
  const Inner inner(*this, loop.scope);
  Capture capture(*this);
  run_loop(*loop.statement, arguments.positional[0], loop.depth + 1);
  return context_.failed() ? Value() : capture.take();
}

}  // namespace kvasir::jinja
