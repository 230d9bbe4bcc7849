#include "core/text/jinja/attribute_path.h"

#include <algorithm>

#include "core/text/jinja/strings.h"

namespace kvasir::jinja {

AttributePath::AttributePath(Evaluator& evaluator, const Value& path) : evaluator_(evaluator) {
  if (path.is(Type::missing) || path.is(Type::none)) return;
  if (!path.is(Type::string)) {
    parts_.push_back(path);
    return;
  }
  const std::string_view text = path.bytes();
  for (size_t at = 0; at <= text.size() && evaluator_.context().step();) {
    const size_t end = std::min(text.find('.', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    const bool is_number = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
    const auto index = is_number ? read_integer(part, 10) : std::nullopt;
    parts_.push_back(index ? Value::integer(*index) : make_markup(evaluator_.context(), part));
    at = end + 1;
  }
}

Value AttributePath::of(const Value& item, const Value& otherwise) const {
  Value value = item;
  for (const Value& part : parts_) {
    if (!evaluator_.context().step()) return {};
    value = evaluator_.get_item(value, part);
    if (value.is_undefined() && !otherwise.is(Type::missing)) value = otherwise;
  }
  return value;
}

Value lower_case(Context& context, const Value& value) {
  return value.is(Type::string) ? change_case(context, value.text(), Case::lower) : value;
}

SortKey::SortKey(Evaluator& evaluator, const Value& paths, bool ignore_case)
    : evaluator_(evaluator), ignore_case_(ignore_case) {
  if (!paths.is(Type::string)) {
    paths_.emplace_back(evaluator, paths);
    return;
  }
  const std::string_view text = paths.bytes();
  for (size_t at = 0; at <= text.size() && evaluator.context().step();) {
    const size_t end = std::min(text.find(',', at), text.size());
    paths_.emplace_back(evaluator, make_markup(evaluator.context(), text.substr(at, end - at)));
    at = end + 1;
  }
}

Value SortKey::of(const Value& item) const {
  std::vector<Value> values;
  for (const AttributePath& path : paths_) {
    const Value value = path.of(item);
    values.push_back(ignore_case_ ? lower_case(evaluator_.context(), value) : value);
  }
  return make_list(evaluator_.context(), std::move(values));
}

}  // namespace kvasir::jinja
