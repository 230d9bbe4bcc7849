// Global functions.
#include <array>

#include "core/text/jinja/builtin.h"
#include "core/text/jinja/evaluator.h"
#include "core/text/jinja/repr.h"
#include "core/text/jinja/strings.h"

namespace kvasir::jinja {
namespace {

Value raise_exception(Evaluator& e, const Value&, Arguments& a) {
  TextBuilder message(e.context());
  append_str(message, a[0]);
  e.context().fail("{}", message.text().bytes);
  return {};
}

Value range(Evaluator& e, const Value&, Arguments& a) {
  constexpr int64_t kMostItems = 100'000;  // jinja2's sandbox
  if (!a.keywords.empty() || a.positional.empty() || a.positional.size() > 3) {
    e.context().fail("range expects 1 to 3 integers");
    return {};
  }
  int64_t numbers[3] = {0, 0, 1};
  for (size_t i = 0; i < a.positional.size(); ++i) {
    if (!a[i].is_integral()) {
      e.context().fail("range expects integers, not '{}'", type_name(a[i]));
      return {};
    }
    numbers[a.positional.size() == 1 ? 1 : i] = a[i].as_integer();
  }
  if (numbers[2] == 0) {
    e.context().fail("range() arg 3 must not be zero");
    return {};
  }
  Value made = make_range(e.context(), numbers[0], numbers[1], numbers[2]);
  if (!e.context().failed() && made.range().size() > kMostItems) {
    e.context().fail(ErrorCode::limit_exceeded, "a range of {} items is longer than the {} allowed",
                     made.range().size(), kMostItems);
  }
  return made;
}

/// What dict(...) and namespace(...) collect: an optional dict or list of pairs, then keywords.
void collect(Evaluator& e, Arguments& a, DictBuilder& items) {
  Context& context = e.context();
  if (a.positional.size() > 1) context.fail("at most one positional argument is expected");
  if (a.positional.size() == 1 && a[0].is(Type::dict)) {
    for (const auto& [key, value] : a[0].dict().items) items.set(key, value);
  } else if (a.positional.size() == 1) {
    std::vector<Value> pairs;
    if (!e.iterate(a[0], pairs)) return;
    for (const Value& pair : pairs) {
      std::vector<Value> parts;
      if (!e.iterate(pair, parts)) return;
      if (parts.size() != 2) {
        context.fail("a dict needs pairs, found {} items", parts.size());
        return;
      }
      items.set(parts[0], parts[1]);
    }
  }
  for (auto& [name, value] : a.keywords) items.set(name, value);
}

Value dict(Evaluator& e, const Value&, Arguments& a) {
  DictBuilder items(e.context());
  collect(e, a, items);
  return items.finish();
}

Value make_namespace(Evaluator& e, const Value&, Arguments& a) {
  DictBuilder builder(e.context());
  collect(e, a, builder);
  const Value items = builder.finish();
  Namespace* space = e.context().failed() ? nullptr : e.new_namespace();
  if (space == nullptr) return {};
  for (const auto& [key, value] : items.dict().items) {
    if (key.is(Type::string) && key.bytes().starts_with('_')) {
      e.context().fail("a namespace cannot hold '{}': names with an underscore first are refused",
                       shortened(key.bytes()));
      return {};
    }
    if (!e.context().take_bytes(3 * 2 * sizeof(Value))) return {};
    space->items.emplace_back(key, value);
  }
  return Value(space);
}

Value strftime_now(Evaluator& e, const Value&, Arguments& a) {
  const Text* format = text_argument(e.context(), a[0], "strftime_now");
  if (format == nullptr) return {};
  TextBuilder out(e.context());
  out.append(format_time(e.context(), format->bytes, e.now()), !format->content.empty());
  return make_string(out);
}

Value cycler(Evaluator& e, const Value&, Arguments& a) {
  if (a.positional.empty()) e.context().fail("at least one item has to be provided");
  const auto bytes = static_cast<int64_t>(a.positional.size() * sizeof(Value));
  Cycler* made = e.context().take_bytes(bytes) ? e.new_cycler() : nullptr;
  if (made == nullptr) return {};
  made->items = std::move(a.positional);
  return Value(Type::cycler, made);
}

Value joiner(Evaluator& e, const Value&, Arguments& a) {
  Cycler* made = e.new_cycler();
  if (made == nullptr) return {};
  made->items.push_back(a.has(0) ? str_of(e.context(), a[0]) : make_markup(e.context(), ", "));
  return Value(Type::joiner, made);
}

constexpr Builtin kFunctions[] = {
    {"cycler", cycler, {}, 0, true},
    {"dict", dict, {}, 0, true},
    {"joiner", joiner, {"sep"}},
    {"namespace", make_namespace, {}, 0, true},
    {"raise_exception", raise_exception, {"message"}, 1},
    {"range", range, {}, 0, true},
    {"strftime_now", strftime_now, {"format"}, 1},
};

}  // namespace

std::span<const Builtin> functions() {
  return kFunctions;
}

}  // namespace kvasir::jinja
