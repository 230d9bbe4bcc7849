// Equality, order, truth and hashes of values.
#include <algorithm>
#include <cmath>
#include <functional>

#include "core/text/jinja/mutable_values.h"
#include "core/text/jinja/value.h"

namespace kvasir::jinja {
namespace {

uint64_t mix(uint64_t h, uint64_t more) {
  h ^= more + 0x9E3779B97F4A7C15u + (h << 6) + (h >> 2);
  return h;
}

bool numbers_equal(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.as_integer() == b.as_integer();
  return a.as_number() == b.as_number();
}

bool items_equal(Context& context, const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size() && !context.failed(); ++i) {
    if (!equal(context, a[i], b[i])) return false;
  }
  return true;
}

bool dicts_equal(Context& context, const Dict& a, const Dict& b) {
  if (a.items.size() != b.items.size()) return false;
  for (const auto& [key, value] : a.items) {
    const Value* other = b.find(key);
    if (other == nullptr || !equal(context, value, *other)) return false;
    if (context.failed()) return false;
  }
  return true;
}

/// Things that are equal only to themselves.
bool same_thing(const Value& a, const Value& b) {
  switch (a.type()) {
    case Type::space:
      return a.space() == b.space();
    case Type::macro:
      return a.macro() == b.macro();
    case Type::loop:
      return a.loop() == b.loop();
    case Type::cycler:
    case Type::joiner:
      return a.cycler() == b.cycler();
    case Type::function:
      return a.function() == b.function();
    default:
      return a.identity() == b.identity();
  }
}

}  // namespace

bool truth(const Value& v) {
  switch (v.type()) {
    case Type::missing:
    case Type::undefined:
    case Type::none:
      return false;
    case Type::boolean:
    case Type::integer:
      return v.as_integer() != 0;
    case Type::real:
      return v.as_real() != 0;
    case Type::generator:
      return true;
    case Type::loop:
      return length_of(v) != 0;
    default:
      return length_of(v) != 0;  // -1, no length: true
  }
}

int64_t length_of(const Value& v) {
  switch (v.type()) {
    case Type::undefined:
      return 0;
    case Type::string:
      return static_cast<int64_t>(v.string().n_characters);
    case Type::list:
    case Type::tuple:
    case Type::view:
      return static_cast<int64_t>(v.sequence().items.size());
    case Type::dict:
      return static_cast<int64_t>(v.dict().items.size());
    case Type::range:
      return v.range().size();
    case Type::loop:
      return static_cast<int64_t>(v.loop()->items.size());
    default:
      return -1;
  }
}

int depth_of(const Value& v) {
  if (v.has_items()) return v.sequence().depth;
  if (v.is(Type::dict)) return v.dict().depth;
  if (v.is(Type::method)) return 1 + depth_of(v.method().self);
  return 0;
}

bool is_hashable(const Value& v) {
  // Tuples of tuples are refused: shared parts would make hashing them exponential in their depth.
  if (v.is(Type::tuple)) {
    const auto& items = v.sequence().items;
    return v.sequence().depth == 1 && std::all_of(items.begin(), items.end(), is_hashable);
  }
  return !v.is(Type::list) && !v.is(Type::dict) && !v.is(Type::view);
}

uint64_t hash(const Value& v) {
  switch (v.type()) {
    case Type::boolean:
    case Type::integer:
      return static_cast<uint64_t>(v.as_integer()) * 0x9E3779B97F4A7C15u;
    case Type::real: {
      const double d = v.as_real();
      if (d == std::floor(d) && std::abs(d) < 9e18)
        return hash(Value::integer(static_cast<int64_t>(d)));
      return std::hash<double>{}(d);
    }
    case Type::string:
      return std::hash<std::string_view>{}(v.bytes());
    case Type::tuple: {
      uint64_t h = 3;
      for (const Value& item : v.sequence().items) h = mix(h, hash(item));
      return h;
    }
    default:
      return static_cast<uint64_t>(v.type());
  }
}

const Value* lookup(Context& context, const Dict& dict, const Value& key) {
  if (!is_hashable(key)) return nullptr;
  if (key.is(Type::string)) context.work(key.bytes().size());
  if (key.is(Type::tuple)) context.step(length_of(key));
  return context.failed() ? nullptr : dict.find(key);
}

bool keys_equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return numbers_equal(a, b);
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case Type::none:
    case Type::undefined:
      return true;
    case Type::string:
      return a.bytes() == b.bytes();
    case Type::tuple:
      return std::equal(a.sequence().items.begin(), a.sequence().items.end(),
                        b.sequence().items.begin(), b.sequence().items.end(), keys_equal);
    default:
      return same_thing(a, b);
  }
}

bool equal(Context& context, const Value& a, const Value& b) {
  if (!context.step()) return false;
  if (a.is_number() && b.is_number()) return numbers_equal(a, b);
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case Type::missing:
    case Type::undefined:
    case Type::none:
      return true;
    case Type::string: {
      context.work(std::min(a.bytes().size(), b.bytes().size()));
      return a.bytes() == b.bytes();
    }
    case Type::list:
    case Type::tuple:
      return items_equal(context, a.sequence().items, b.sequence().items);
    case Type::dict:
      return dicts_equal(context, a.dict(), b.dict());
    case Type::range: {
      const Range& r = a.range();
      const Range& s = b.range();
      const int64_t n = r.size();
      return n == s.size() && (n == 0 || r.start == s.start) && (n < 2 || r.step == s.step);
    }
    case Type::method:
      return a.method().builtin == b.method().builtin &&
             same_thing(a.method().self, b.method().self);
    default:
      return same_thing(a, b);
  }
}

int compare(Context& context, const Value& a, const Value& b, const char* operation) {
  if (!context.step()) return 0;
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) {
      return a.as_integer() < b.as_integer() ? -1 : a.as_integer() > b.as_integer() ? 1 : 0;
    }
    const double x = a.as_number(), y = b.as_number();
    return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
  }
  if (a.is(Type::string) && b.is(Type::string)) {
    context.work(std::min(a.bytes().size(), b.bytes().size()));
    const int order = a.bytes().compare(b.bytes());  // UTF-8 keeps the order of code points
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  if (a.type() == b.type() && (a.is(Type::list) || a.is(Type::tuple))) {
    const auto& x = a.sequence().items;
    const auto& y = b.sequence().items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!equal(context, x[i], y[i])) return compare(context, x[i], y[i], operation);
      if (context.failed()) return 0;
    }
    return x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0;
  }
  context.fail("'{}' not supported between instances of '{}' and '{}'", operation, type_name(a),
               type_name(b));
  return 0;
}

}  // namespace kvasir::jinja
