// "a.b.0": the attributes that filters like map and sort look up in each item.
#pragma once

#include <vector>

#include "core/text/jinja/evaluator.h"

namespace kvasir::jinja {

class AttributePath {
 public:
  /// `path`: a string, an integer, or nothing (the item itself).
  AttributePath(Evaluator& evaluator, const Value& path);
  /// `otherwise` stands for what is undefined, when given.
  Value of(const Value& item, const Value& otherwise = Value::missing()) const;

 private:
  Evaluator& evaluator_;
  std::vector<Value> parts_;
};

/// Several paths with commas between them, as `sort` takes; for each item the list of their values,
/// in lower case where `ignore_case`.
class SortKey {
 public:
  SortKey(Evaluator& evaluator, const Value& paths, bool ignore_case);
  Value of(const Value& item) const;

 private:
  Evaluator& evaluator_;
  std::vector<AttributePath> paths_;
  bool ignore_case_;
};

Value lower_case(Context& context, const Value& value);

}  // namespace kvasir::jinja
