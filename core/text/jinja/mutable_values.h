// The few values that change while a template runs. The evaluator owns them until the end.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/text/jinja/ast.h"
#include "core/text/jinja/value.h"

namespace kvasir::jinja {

struct Scope;

struct Namespace {
  std::vector<std::pair<Value, Value>> items;  ///< in the order they were first set
  Value* find(std::string_view name) {
    for (auto& [key, value] : items) {
      if (key.is(Type::string) && key.bytes() == name) return &value;
    }
    return nullptr;
  }
};

/// A macro, or the body of a call block.
struct Macro {
  const Statement* definition = nullptr;
  std::shared_ptr<Scope> scope;  ///< where it was defined
};

/// `loop` inside a for statement.
struct Loop {
  std::vector<Value> items;
  size_t index = 0;
  int depth = 0;
  const Statement* statement = nullptr;
  std::shared_ptr<Scope> scope;  ///< around the statement; recursive loops only
  Value last_changed = Value::missing();
};

/// cycler() and joiner().
struct Cycler {
  std::vector<Value> items;
  size_t position = 0;
};

/// Equality of dict keys: no budget, since keys hold no lists or dicts.
bool keys_equal(const Value& a, const Value& b);

}  // namespace kvasir::jinja
