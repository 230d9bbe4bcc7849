// Filters, tests, methods and global functions as data.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/jinja/value.h"

namespace kvasir::jinja {

class Evaluator;

/// Arguments of a call. For a builtin that names its parameters, `positional` has one entry for
/// each of them (missing() where not given) and `keywords` is empty.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<Value, Value>> keywords;  ///< names are strings

  bool has(size_t i) const { return i < positional.size() && !positional[i].is(Type::missing); }
  const Value& operator[](size_t i) const { return positional[i]; }
};

/// `self`: what stands before the | of a filter, before `is`, or before a method's dot; nothing for
/// functions.
using BuiltinFunction = Value (*)(Evaluator&, const Value& self, Arguments& arguments);

struct Builtin {
  std::string_view name;
  BuiltinFunction function;
  std::array<std::string_view, 6> parameters = {};  ///< in order, after self
  int n_required = 0;
  bool takes_any = false;  ///< arguments are passed as they came
};

const Builtin* find_builtin(std::span<const Builtin> table, std::string_view name);

std::span<const Builtin> string_filters();
std::span<const Builtin> sequence_filters();
std::span<const Builtin> other_filters();
const Builtin* find_filter(std::string_view name);
std::span<const Builtin> tests();
const Builtin* find_test(std::string_view name);
std::span<const Builtin> functions();

/// The method that an attribute of `object` names, if any. Methods that would change a list or
/// dict are there too, as `is_unsafe`: the sandbox hides them.
struct Method {
  const Builtin* builtin = nullptr;
  bool is_unsafe = false;
};
Method find_method(const Value& object, std::string_view name);
std::span<const Builtin> string_methods();
std::span<const Builtin> more_string_methods();

}  // namespace kvasir::jinja
