#include "core/text/jinja/value.h"

#include <algorithm>
#include <cmath>

#include "core/text/jinja/mutable_values.h"
#include "core/text/jinja/repr.h"
#include "core/text/jinja/unicode.h"

namespace kvasir::jinja {
namespace {

// A shared object's control block, the allocator's header and rounding.
constexpr int64_t kOverhead = 48;
constexpr size_t kMostUnindexedItems = 8;

template <class T>
std::shared_ptr<T> make_object(Context* context, int64_t more_bytes) {
  const int64_t bytes = static_cast<int64_t>(sizeof(T)) + kOverhead + more_bytes;
  if (context != nullptr && !context->take_bytes(bytes)) return nullptr;
  auto object = std::make_shared<T>();
  object->charge = Charge(context, bytes);
  return object;
}

}  // namespace

Value Value::real(double d) {
  Value v(Type::real);
  v.scalar_.real = d;
  return v;
}

const StringObject& Value::string() const {
  return static_cast<const StringObject&>(*object_);
}
const Text& Value::text() const {
  return string().text;
}
const Sequence& Value::sequence() const {
  return static_cast<const Sequence&>(*object_);
}
const Dict& Value::dict() const {
  return static_cast<const Dict&>(*object_);
}
const Range& Value::range() const {
  return static_cast<const Range&>(*object_);
}
const BoundMethod& Value::method() const {
  return static_cast<const BoundMethod&>(*object_);
}
const UndefinedObject* Value::undefined_object() const {
  return static_cast<const UndefinedObject*>(object_.get());
}

int64_t Range::size() const {
  // Differences of int64 may overflow: 128 bits.
  const auto distance = static_cast<Wide>(stop) - start;
  if ((step > 0) != (distance > 0) || distance == 0) return 0;
  const Wide magnitude = step > 0 ? distance : -distance;
  const Wide stride = step > 0 ? step : -static_cast<Wide>(step);
  const Wide n = (magnitude + stride - 1) / stride;
  return n > INT64_MAX ? INT64_MAX : static_cast<int64_t>(n);
}

Value make_string(Context* context, Text text) {
  const auto bytes =
      static_cast<int64_t>(text.bytes.capacity() + text.content.capacity() * sizeof(ByteRange));
  auto object = make_object<StringObject>(context, bytes);
  if (object == nullptr) return {};
  object->text = std::move(text);
  object->n_characters = count_characters(object->text.bytes);
  return Value(Type::string, std::move(object));
}

Value make_string(TextBuilder& builder) {
  Context& context = builder.context();
  int64_t charged = 0;
  Text text = builder.take(charged);
  auto object = context.failed() ? nullptr : make_object<StringObject>(&context, 0);
  if (object == nullptr) {
    context.give_back_bytes(charged);
    return {};
  }
  object->charge.add(charged);
  object->text = std::move(text);
  object->n_characters = count_characters(object->text.bytes);
  context.work(object->text.bytes.size());
  return Value(Type::string, std::move(object));
}

Value make_markup(Context& context, std::string_view bytes) {
  TextBuilder builder(context);
  builder.append_markup(bytes);
  return make_string(builder);
}

bool take_items(Context& context, size_t n) {
  const auto bytes = static_cast<int64_t>(n * sizeof(Value));
  if (!context.take_bytes(bytes)) return false;
  context.give_back_bytes(bytes);  // make_sequence charges what is really there
  return context.step(static_cast<int64_t>(n / 16));
}

Value make_sequence(Context* context, Type type, std::vector<Value> items, const char* type_name) {
  if (context != nullptr && context->failed()) return {};
  const auto bytes = static_cast<int64_t>(items.capacity() * sizeof(Value));
  auto object = make_object<Sequence>(context, bytes);
  if (object == nullptr) return {};
  for (const Value& item : items) object->depth = std::max(object->depth, 1 + depth_of(item));
  if (context != nullptr) {
    context->step(static_cast<int64_t>(items.size() / 16));
    if (object->depth > kMostValueDepth) {
      context->fail(ErrorCode::limit_exceeded, "lists are nested deeper than {} levels",
                    kMostValueDepth);
      return {};
    }
  }
  object->items = std::move(items);
  object->type_name = type_name;
  return Value(type, std::move(object));
}

Value make_list(Context& context, std::vector<Value> items) {
  return make_sequence(&context, Type::list, std::move(items));
}

Value make_failing_generator(Context& context, std::string error) {
  auto object = make_object<Sequence>(&context, static_cast<int64_t>(error.capacity()));
  if (object == nullptr) return {};
  object->deferred_error = std::move(error);
  object->type_name = "generator";
  return Value(Type::generator, std::move(object));
}

Value make_range(Context& context, int64_t start, int64_t stop, int64_t step) {
  auto object = make_object<Range>(&context, 0);
  if (object == nullptr) return {};
  object->start = start;
  object->stop = stop;
  object->step = step;
  return Value(Type::range, std::move(object));
}

Value make_method(Context& context, const Value& self, const Builtin* builtin) {
  auto object = make_object<BoundMethod>(&context, 0);
  if (object == nullptr) return {};
  object->self = self;
  object->builtin = builtin;
  return Value(Type::method, std::move(object));
}

Value make_undefined(Context& context, std::string message) {
  auto object = make_object<UndefinedObject>(&context, static_cast<int64_t>(message.capacity()));
  if (object == nullptr) return {};
  object->message = std::move(message);
  return Value(Type::undefined, std::move(object));
}

Value missing_attribute(Context& context, const Value& object, const Value& name) {
  const std::string owner =
      object.is(Type::none) ? "None" : fmt::format("{} object", type_name(object));
  if (name.is(Type::string)) {
    return make_undefined(
        context, fmt::format("'{}' has no attribute '{}'", owner, shortened(name.bytes())));
  }
  return make_undefined(context,
                        fmt::format("{} has no element {}", owner, short_repr(context, name)));
}

const Value* Dict::find(const Value& key) const {
  const auto same = [&](const Value& other) {
    if (key.is(Type::string)) return other.is(Type::string) && other.bytes() == key.bytes();
    return !other.is(Type::string) && hash(key) == hash(other) && keys_equal(key, other);
  };
  if (items.size() <= kMostUnindexedItems) {
    for (const auto& [other, value] : items) {
      if (same(other)) return &value;
    }
    return nullptr;
  }
  const auto [begin, end] = index.equal_range(hash(key));
  for (auto at = begin; at != end; ++at) {
    if (same(items[at->second].first)) return &items[at->second].second;
  }
  return nullptr;
}

const Value* Dict::find(std::string_view key) const {
  for (const auto& [other, value] : items) {
    if (other.is(Type::string) && other.bytes() == key) return &value;
  }
  return nullptr;
}

DictBuilder::DictBuilder(Context& context)
    : context_(context), dict_(make_object<Dict>(&context, 0)) {}

void DictBuilder::set(const Value& key, Value value) {
  if (dict_ == nullptr || context_.failed()) return;
  if (!is_hashable(key)) {
    context_.fail("unhashable type: '{}'", type_name(key));
    return;
  }
  if (const Value* old = dict_->find(key)) {
    dict_->depth = std::max(dict_->depth, 1 + depth_of(value));
    *const_cast<Value*>(old) = std::move(value);  // ours: not shared yet
    return;
  }
  // A vector that doubles holds at most 3 times its items while it moves; an index entry is a node.
  constexpr int64_t kItemBytes = 3 * 2 * sizeof(Value) + 64;
  if (!context_.step() || !context_.take_bytes(kItemBytes)) return;
  dict_->charge.add(kItemBytes);
  dict_->depth = std::max({dict_->depth, 1 + depth_of(value), 1 + depth_of(key)});
  if (dict_->depth > kMostValueDepth) {
    context_.fail(ErrorCode::limit_exceeded, "dicts are nested deeper than {} levels",
                  kMostValueDepth);
    return;
  }
  dict_->items.emplace_back(key, std::move(value));
  const size_t n = dict_->items.size();
  if (n <= kMostUnindexedItems) return;
  const size_t first = n == kMostUnindexedItems + 1 ? 0 : n - 1;
  for (size_t i = first; i < n; ++i) {
    dict_->index.emplace(hash(dict_->items[i].first), static_cast<uint32_t>(i));
  }
}

bool DictBuilder::add_if_new(const Value& key) {
  if (dict_ == nullptr) return false;
  const size_t n = dict_->items.size();
  set(key, Value::none());
  return dict_->items.size() > n;
}

Value DictBuilder::finish() {
  if (dict_ == nullptr || context_.failed()) return {};
  return Value(Type::dict, std::move(dict_));
}

}  // namespace kvasir::jinja
