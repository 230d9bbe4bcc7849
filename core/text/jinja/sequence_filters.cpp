// Filters that choose, order and group the items of lists.
#include <algorithm>
#include <numeric>

#include "core/text/jinja/attribute_path.h"
#include "core/text/jinja/builtin.h"
#include "core/text/jinja/evaluator.h"
#include "core/text/jinja/operators.h"
#include "core/text/jinja/repr.h"
#include "core/text/jinja/strings.h"

namespace kvasir::jinja {
namespace {

Value generator(Evaluator& e, std::vector<Value> items) {
  return make_sequence(&e.context(), Type::generator, std::move(items), "generator");
}

/// The items of a lazy filter's input. When there are none to be had, `result` is what the filter
/// gives: nothing if the error is here already, else a generator that will fail.
bool lazy_items(Evaluator& e, const Value& v, std::vector<Value>& items, Value& result) {
  if (Evaluator::is_iterable(v) && (!v.has_items() || v.sequence().deferred_error.empty())) {
    return e.iterate(v, items);
  }
  result = make_failing_generator(
      e.context(), v.has_items() ? v.sequence().deferred_error
                                 : fmt::format("'{}' object is not iterable", type_name(v)));
  return false;
}

/// map('filter', arguments...) or map(attribute='path', default=...)
Value map_filter(Evaluator& e, const Value& v, Arguments& a) {
  Context& context = e.context();
  std::vector<Value> items, out;
  Value result;
  if (!truth(v)) return generator(e, {});
  if (a.positional.empty()) {
    Value attribute = Value::missing(), otherwise = Value::missing();
    for (const auto& [name, value] : a.keywords) {
      if (name.bytes() == "attribute") {
        attribute = value;
      } else if (name.bytes() == "default") {
        otherwise = value.is(Type::none) ? Value::missing() : value;
      } else {
        context.fail("filter 'map' does not know the argument '{}'", shortened(name.bytes()));
      }
    }
    if (attribute.is(Type::missing)) context.fail("filter 'map' needs a filter or an attribute");
    if (!lazy_items(e, v, items, result)) return result;
    const AttributePath path(e, attribute);
    for (const Value& item : items) {
      if (!context.step()) return {};
      out.push_back(path.of(item, otherwise));
    }
    return generator(e, std::move(out));
  }
  const Builtin* filter = a[0].is(Type::string) ? find_filter(a[0].bytes()) : nullptr;
  if (filter == nullptr) {
    context.fail("unknown filter {} in map", short_repr(context, a[0]));
    return {};
  }
  if (!lazy_items(e, v, items, result)) return result;
  for (const Value& item : items) {
    Arguments arguments;
    arguments.positional.assign(a.positional.begin() + 1, a.positional.end());
    arguments.keywords = a.keywords;
    const Nested nested(context);  // map('map', 'map', ...)
    if (!nested || !context.step()) return {};
    out.push_back(e.call_builtin(*filter, "filter", item, arguments));
  }
  return generator(e, std::move(out));
}

/// select, reject and with an attribute in front selectattr, rejectattr.
Value choose(Evaluator& e, const Value& v, Arguments& a, bool keep, bool by_attribute) {
  Context& context = e.context();
  std::vector<Value> items, out;
  Value result;
  if (!truth(v)) return generator(e, {});
  const size_t first = by_attribute ? 1 : 0;
  if (a.positional.size() < first) {
    context.fail("the name of an attribute is missing");
    return {};
  }
  const AttributePath path(e, by_attribute ? a[0] : Value::missing());
  const Builtin* test = nullptr;
  if (a.positional.size() > first) {
    test = a[first].is(Type::string) ? find_test(a[first].bytes()) : nullptr;
    if (test == nullptr) {
      context.fail("unknown test {}", short_repr(context, a[first]));
      return {};
    }
  }
  if (!lazy_items(e, v, items, result)) return result;
  for (const Value& item : items) {
    if (!context.step()) return {};
    Value value = path.of(item);
    if (test != nullptr) {
      Arguments arguments;
      arguments.positional.assign(a.positional.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                                  a.positional.end());
      arguments.keywords = a.keywords;
      value = e.call_builtin(*test, "test", value, arguments);
    }
    if (context.failed()) return {};
    if (truth(value) == keep) out.push_back(item);
  }
  return generator(e, std::move(out));
}
Value select(Evaluator& e, const Value& v, Arguments& a) {
  return choose(e, v, a, true, false);
}
Value reject(Evaluator& e, const Value& v, Arguments& a) {
  return choose(e, v, a, false, false);
}
Value selectattr(Evaluator& e, const Value& v, Arguments& a) {
  return choose(e, v, a, true, true);
}
Value rejectattr(Evaluator& e, const Value& v, Arguments& a) {
  return choose(e, v, a, false, true);
}

/// Positions of `keys` in ascending (or descending) order, equal ones as they were.
std::vector<size_t> sorted_order(Context& context, const std::vector<Value>& keys, bool reverse) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) {
    if (context.failed()) return false;
    return compare(context, keys[x], keys[y], "<") == (reverse ? 1 : -1);
  });
  return order;
}

Value sort(Evaluator& e, const Value& v, Arguments& a) {
  std::vector<Value> items, keys, out;
  if (!e.iterate(v, items)) return {};
  const SortKey key(e, a.has(2) ? a[2] : Value::missing(), !(a.has(1) && truth(a[1])));
  for (const Value& item : items) {
    if (!e.context().step()) return {};
    keys.push_back(key.of(item));
  }
  if (e.context().failed()) return {};
  for (const size_t i : sorted_order(e.context(), keys, a.has(0) && truth(a[0]))) {
    out.push_back(items[i]);
  }
  return make_list(e.context(), std::move(out));
}

Value dictsort(Evaluator& e, const Value& v, Arguments& a) {
  Context& context = e.context();
  const bool by_value = a.has(1) && a[1].is(Type::string) && a[1].bytes() == "value";
  if (!v.is(Type::dict)) {
    context.fail("filter 'dictsort' needs a dict, not '{}'", type_name(v));
    return {};
  }
  std::vector<Value> keys, out;
  for (const auto& [key, value] : v.dict().items) {
    const Value& sorted_by = by_value ? value : key;
    keys.push_back(a.has(0) && truth(a[0]) ? sorted_by : lower_case(context, sorted_by));
  }
  if (context.failed()) return {};
  for (const size_t i : sorted_order(context, keys, a.has(2) && truth(a[2]))) {
    const auto& [key, value] = v.dict().items[i];
    out.push_back(make_sequence(&context, Type::tuple, {key, value}));
  }
  return make_list(context, std::move(out));
}

Value groupby(Evaluator& e, const Value& v, Arguments& a) {
  Context& context = e.context();
  std::vector<Value> items, shown, keys, out;
  if (!e.iterate(v, items)) return {};
  const AttributePath path(e, a[0]);
  const bool case_sensitive = a.has(2) && truth(a[2]);
  for (const Value& item : items) {
    if (!context.step()) return {};
    shown.push_back(path.of(item, a.has(1) && !a[1].is(Type::none) ? a[1] : Value::missing()));
    keys.push_back(case_sensitive ? shown.back() : lower_case(context, shown.back()));
  }
  if (context.failed()) return {};
  const auto order = sorted_order(context, keys, false);
  for (size_t i = 0; i < order.size() && !context.failed();) {
    std::vector<Value> group;
    const size_t first = order[i];
    for (; i < order.size() && equal(context, keys[order[i]], keys[first]); ++i) {
      group.push_back(items[order[i]]);
    }
    const Value list = make_list(context, std::move(group));
    out.push_back(make_sequence(&context, Type::tuple, {shown[first], list}, kGroupName.data()));
  }
  return make_list(context, std::move(out));
}

Value unique(Evaluator& e, const Value& v, Arguments& a) {
  std::vector<Value> items, out;
  Value result;
  if (!lazy_items(e, v, items, result)) return result;
  const AttributePath path(e, a.has(1) ? a[1] : Value::missing());
  DictBuilder seen(e.context());
  for (const Value& item : items) {
    if (!e.context().step()) return {};
    Value key = path.of(item);
    if (!(a.has(0) && truth(a[0]))) key = lower_case(e.context(), key);
    if (e.context().failed()) return {};
    if (seen.add_if_new(key)) out.push_back(item);
  }
  return generator(e, std::move(out));
}

Value extreme(Evaluator& e, const Value& v, Arguments& a, int wanted) {
  std::vector<Value> items;
  if (!e.iterate(v, items)) return {};
  if (items.empty()) {
    return make_undefined(e.context(), "no aggregated item, the sequence was empty");
  }
  const AttributePath path(e, a.has(1) ? a[1] : Value::missing());
  const auto key_of = [&](const Value& item) {
    const Value key = path.of(item);
    return a.has(0) && truth(a[0]) ? key : lower_case(e.context(), key);
  };
  size_t best = 0;
  Value best_key = key_of(items[0]);
  for (size_t i = 1; i < items.size() && !e.context().failed(); ++i) {
    const Value key = key_of(items[i]);
    if (compare(e.context(), key, best_key, wanted < 0 ? "<" : ">") == wanted) {
      best = i;
      best_key = key;
    }
  }
  return items[best];
}
Value min_filter(Evaluator& e, const Value& v, Arguments& a) {
  return extreme(e, v, a, -1);
}
Value max_filter(Evaluator& e, const Value& v, Arguments& a) {
  return extreme(e, v, a, 1);
}

Value sum(Evaluator& e, const Value& v, Arguments& a) {
  std::vector<Value> items;
  if (!e.iterate(v, items)) return {};
  const AttributePath path(e, a.has(0) ? a[0] : Value::missing());
  Value total = a.has(1) ? a[1] : Value::integer(0);
  if (total.is(Type::string)) e.context().fail("sum() cannot add strings, use join");
  for (const Value& item : items) {
    if (!e.context().step()) return {};
    total = binary(e.context(), Operation::add, total, path.of(item));
  }
  return total;
}

Value batch(Evaluator& e, const Value& v, Arguments& a) {
  std::vector<Value> items, out;
  Value result;
  if (!lazy_items(e, v, items, result)) return result;
  const int64_t size = integer_argument(e.context(), a[0], 0, "batch");
  if (size < 1) e.context().fail("filter 'batch' needs a size above 0");
  for (size_t i = 0; i < items.size() && e.context().step();) {
    const size_t n = std::min(items.size() - i, static_cast<size_t>(size));
    const auto begin = items.begin() + static_cast<std::ptrdiff_t>(i);
    std::vector<Value> part(begin, begin + static_cast<std::ptrdiff_t>(n));
    const bool fill = a.has(1) && !a[1].is(Type::none);
    while (fill && static_cast<int64_t>(part.size()) < size &&
           take_items(e.context(), part.size()) && e.context().step()) {
      part.push_back(a[1]);
    }
    out.push_back(make_list(e.context(), std::move(part)));
    i += n;
  }
  return generator(e, std::move(out));
}

Value slice_filter(Evaluator& e, const Value& v, Arguments& a) {
  std::vector<Value> items, out;
  Value result;
  if (!lazy_items(e, v, items, result)) return result;
  const int64_t n = integer_argument(e.context(), a[0], 0, "slice");
  if (n == 0) e.context().fail("filter 'slice' needs a number above 0");
  if (e.context().failed() || n < 0) return generator(e, {});
  const auto size = static_cast<int64_t>(items.size());
  int64_t begin = 0;
  for (int64_t i = 0; i < n && e.context().step(); ++i) {
    const bool is_longer = i < size % n;
    const int64_t end = begin + size / n + (is_longer ? 1 : 0);
    std::vector<Value> part(items.begin() + begin, items.begin() + end);
    if (a.has(1) && !a[1].is(Type::none) && !is_longer) part.push_back(a[1]);
    out.push_back(make_list(e.context(), std::move(part)));
    begin = end;
  }
  return generator(e, std::move(out));
}

Value join_filter(Evaluator& e, const Value& v, Arguments& a) {
  std::vector<Value> items;
  if (!e.iterate(v, items)) return {};
  if (a.has(1) && !a[1].is(Type::none)) {
    const AttributePath path(e, a[1]);
    for (Value& item : items) item = path.of(item);
  }
  const Value separator = a.has(0) ? str_of(e.context(), a[0]) : make_markup(e.context(), "");
  return e.context().failed() ? Value() : join(e.context(), separator.text(), items);
}

constexpr Builtin kSequenceFilters[] = {
    {"batch", batch, {"linecount", "fill_with"}, 1},
    {"dictsort", dictsort, {"case_sensitive", "by", "reverse"}},
    {"groupby", groupby, {"attribute", "default", "case_sensitive"}, 1},
    {"join", join_filter, {"d", "attribute"}},
    {"map", map_filter, {}, 0, true},
    {"max", max_filter, {"case_sensitive", "attribute"}},
    {"min", min_filter, {"case_sensitive", "attribute"}},
    {"reject", reject, {}, 0, true},
    {"rejectattr", rejectattr, {}, 0, true},
    {"select", select, {}, 0, true},
    {"selectattr", selectattr, {}, 0, true},
    {"slice", slice_filter, {"slices", "fill_with"}, 1},
    {"sort", sort, {"reverse", "case_sensitive", "attribute"}},
    {"sum", sum, {"attribute", "start"}},
    {"unique", unique, {"case_sensitive", "attribute"}},
};

}  // namespace

std::span<const Builtin> sequence_filters() {
  return kSequenceFilters;
}

}  // namespace kvasir::jinja
