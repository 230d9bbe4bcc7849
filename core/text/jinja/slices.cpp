// Indices and slices.
#include <algorithm>

#include "core/text/jinja/operators.h"
#include "core/text/jinja/repr.h"
#include "core/text/jinja/unicode.h"

namespace kvasir::jinja {
namespace {

/// Positions start, start + step, ... (n of them) of a container, as Python's slice.indices().
struct Positions {
  int64_t start = 0, step = 1, n = 0;
};

bool read_bound(Context& context, const Value& value, int64_t otherwise, int64_t& bound) {
  bound = otherwise;
  if (value.is(Type::none)) return true;
  if (!value.is_integral()) {
    context.fail("slice indices must be integers or none, not '{}'", type_name(value));
    return false;
  }
  bound = value.as_integer();
  return true;
}

bool read_positions(Context& context, int64_t size, const Value& start, const Value& stop,
                    const Value& step, Positions& positions) {
  if (!read_bound(context, step, 1, positions.step)) return false;
  if (positions.step == 0) {
    context.fail("slice step cannot be zero");
    return false;
  }
  positions.step = std::max(positions.step, -INT64_MAX);
  const bool down = positions.step < 0;
  int64_t first = 0, last = 0;
  if (!read_bound(context, start, down ? INT64_MAX : 0, first)) return false;
  const bool stops = !stop.is(Type::none);
  if (!read_bound(context, stop, 0, last)) return false;
  const auto clamped = [&](int64_t i) {
    if (i < 0) i += size;
    return std::clamp<int64_t>(i, down ? -1 : 0, down ? size - 1 : size);
  };
  positions.start = clamped(first);
  const int64_t end = stops ? clamped(last) : (down ? -1 : size);
  const Wide distance =
      down ? static_cast<Wide>(positions.start) - end : static_cast<Wide>(end) - positions.start;
  const int64_t stride = down ? -positions.step : positions.step;
  positions.n = distance <= 0 ? 0 : static_cast<int64_t>((distance + stride - 1) / stride);
  return true;
}

Value slice_string(Context& context, const Value& value, const Positions& p) {
  const Text& text = value.text();
  if (!context.work(text.bytes.size())) return {};
  const auto n = static_cast<size_t>(p.n);
  if (p.step == 1) {
    const auto start = static_cast<size_t>(p.start);
    if (value.string().is_ascii()) return substring(context, text, start, start + n);
    const size_t begin = offset_of_character(text.bytes, start);
    const size_t size = offset_of_character(std::string_view(text.bytes).substr(begin), n);
    return substring(context, text, begin, begin + size);
  }
  TextBuilder out(context);
  if (n == 0) return make_string(out);
  size_t at = offset_of_character(text.bytes, static_cast<size_t>(p.start));
  for (int64_t i = 0; i < p.n && context.step(); ++i) {
    out.append(text, at, at + character_at(text.bytes, at).n_bytes);
    if (i + 1 == p.n) break;
    for (int64_t skipped = 0; skipped < std::abs(p.step); ++skipped) {
      at = p.step < 0 ? previous_character(text.bytes, at)
                      : at + character_at(text.bytes, at).n_bytes;
    }
  }
  return make_string(out);
}

}  // namespace

Value substring(Context& context, const Text& text, size_t begin, size_t end) {
  TextBuilder out(context);
  out.append(text, begin, end);
  return make_string(out);
}

Value item_at(Context& context, const Value& container, int64_t index, bool& found) {
  const bool indexable = container.is(Type::string) || container.is(Type::list) ||
                         container.is(Type::tuple) || container.is(Type::range);
  const int64_t size = indexable ? length_of(container) : 0;
  if (index < 0) index += size;
  found = index >= 0 && index < size;
  if (!found) return {};
  if (container.is(Type::range)) return Value::integer(container.range()[index]);
  if (!container.is(Type::string)) return container.sequence().items[static_cast<size_t>(index)];
  return slice_string(context, container, Positions{index, 1, 1});
}

Value slice(Context& context, const Value& container, const Value& start, const Value& stop,
            const Value& step) {
  if (container.is_undefined()) {
    const auto* why = container.undefined_object();
    context.fail("{}", why != nullptr ? why->message : "a value is undefined");
    return {};
  }
  const bool sliceable = container.is(Type::string) || container.is(Type::list) ||
                         container.is(Type::tuple) || container.is(Type::range);
  if (!sliceable) {
    context.fail("'{}' object cannot be sliced", type_name(container));
    return {};
  }
  Positions p;
  if (!read_positions(context, length_of(container), start, stop, step, p)) return {};
  if (container.is(Type::string)) return slice_string(context, container, p);
  if (container.is(Type::range)) {
    const Range& range = container.range();
    const int64_t first = p.n == 0 ? range.start : range[p.start];
    int64_t stride = 1;
    if (__builtin_mul_overflow(range.step, p.step, &stride)) stride = range.step;
    return make_range(context, first, first + p.n * stride, stride);
  }
  if (!take_items(context, static_cast<size_t>(p.n))) return {};
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(p.n));
  const auto& source = container.sequence().items;
  for (int64_t i = 0, at = p.start; i < p.n; ++i) {
    items.push_back(source[static_cast<size_t>(at)]);
    if (i + 1 < p.n) at += p.step;  // past the last one it could overflow
  }
  return make_sequence(&context, container.type(), std::move(items));
}

}  // namespace kvasir::jinja
