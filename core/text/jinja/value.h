// Values of the template language: Python's, as far as a sandboxed template can see them.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/text/jinja/context.h"
#include "core/text/jinja/text.h"

namespace kvasir::jinja {

/// Wide enough for sums and products of two 64-bit integers.
__extension__ using Wide = __int128;

class Value;
struct Builtin;
struct Namespace;
struct Macro;
struct Loop;
struct Cycler;

/// What values share and nobody changes. Its charge is given back when the last user lets go.
struct Object {
  Charge charge;
  virtual ~Object() = default;
};
struct StringObject;
struct Sequence;
struct Dict;
struct Range;
struct BoundMethod;
struct UndefinedObject;

enum class Type : uint8_t {
  missing,  ///< an argument that was not given; never seen by templates
  undefined,
  none,
  boolean,
  integer,
  real,
  string,
  list,
  tuple,
  dict,
  range,
  view,       ///< dict.keys(), values(), items(): iterable and with a length, but no index
  generator,  ///< what lazy filters give: can be gone through once
  function,   ///< a global function
  method,     ///< a method with its object
  space,      ///< namespace()
  macro,
  loop,
  cycler,
  joiner,
};

/// 32 bytes, cheap to copy. Lists and dicts never change (the sandbox forbids it), so sharing
/// them is safe. Namespaces, macros and loops belong to the evaluator and outlive every value.
class Value {
 public:
  Value() : type_(Type::undefined) { scalar_.integer = 0; }
  static Value missing() { return Value(Type::missing); }
  static Value none() { return Value(Type::none); }
  static Value boolean(bool b) { return integer_of(Type::boolean, b ? 1 : 0); }
  static Value integer(int64_t i) { return integer_of(Type::integer, i); }
  static Value real(double d);
  Value(Type type, std::shared_ptr<const Object> object) : object_(std::move(object)), type_(type) {
    scalar_.integer = 0;
  }
  explicit Value(Namespace* space) : Value(Type::space) { scalar_.space = space; }
  explicit Value(Macro* macro) : Value(Type::macro) { scalar_.macro = macro; }
  explicit Value(Loop* loop) : Value(Type::loop) { scalar_.loop = loop; }
  Value(Type type, Cycler* cycler) : Value(type) { scalar_.cycler = cycler; }
  explicit Value(const Builtin* function) : Value(Type::function) { scalar_.function = function; }

  Type type() const { return type_; }
  bool is(Type type) const { return type_ == type; }
  bool is_undefined() const { return type_ == Type::undefined; }
  bool is_integral() const { return is(Type::integer) || is(Type::boolean); }
  bool is_number() const { return is_integral() || is(Type::real); }
  bool has_items() const {
    return is(Type::list) || is(Type::tuple) || is(Type::view) || is(Type::generator);
  }

  /// Each may be called only on a value of its type.
  int64_t as_integer() const { return scalar_.integer; }  ///< integer or boolean
  double as_real() const { return scalar_.real; }
  double as_number() const {
    return is(Type::real) ? scalar_.real : static_cast<double>(scalar_.integer);
  }
  const StringObject& string() const;
  const Text& text() const;
  std::string_view bytes() const { return text().bytes; }
  const Sequence& sequence() const;  ///< when has_items()
  const Dict& dict() const;
  const Range& range() const;
  const BoundMethod& method() const;
  const UndefinedObject* undefined_object() const;  ///< may be null
  Namespace* space() const { return scalar_.space; }
  Macro* macro() const { return scalar_.macro; }
  Loop* loop() const { return scalar_.loop; }
  Cycler* cycler() const { return scalar_.cycler; }
  const Builtin* function() const { return scalar_.function; }
  const Object* identity() const { return object_.get(); }

 private:
  explicit Value(Type type) : type_(type) { scalar_.integer = 0; }
  static Value integer_of(Type type, int64_t i) {
    Value v(type);
    v.scalar_.integer = i;
    return v;
  }
  union {
    int64_t integer;
    double real;
    Namespace* space;
    Macro* macro;
    Loop* loop;
    Cycler* cycler;
    const Builtin* function;
  } scalar_;
  std::shared_ptr<const Object> object_;
  Type type_;
};

struct StringObject final : Object {
  Text text;
  size_t n_characters = 0;
  bool is_ascii() const { return n_characters == text.bytes.size(); }
};

struct Sequence final : Object {
  std::vector<Value> items;
  int depth = 1;                  ///< 1 + the deepest item's
  mutable bool consumed = false;  ///< generators only
  std::string deferred_error;     ///< generators only: what going through it says
  const char* type_name = "";     ///< of views and generators: "dict_keys", ...
};

/// type_name of the (grouper, list) tuples that the groupby filter makes.
inline constexpr std::string_view kGroupName = "group";

struct Range final : Object {
  int64_t start = 0, stop = 0, step = 1;
  int64_t size() const;
  int64_t operator[](int64_t i) const { return start + i * step; }
};

struct BoundMethod final : Object {
  Value self;
  const Builtin* builtin = nullptr;
};

/// Why a value is undefined, for the error when it is used.
struct UndefinedObject final : Object {
  std::string message;
};

/// In insertion order; keys compare as in Python (1 == 1.0 == true).
struct Dict final : Object {
  std::vector<std::pair<Value, Value>> items;
  std::unordered_multimap<uint64_t, uint32_t> index;  ///< by hash; used from 9 items on
  int depth = 1;

  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
};

/// Collects a dict; a later key replaces the value of an equal earlier one.
class DictBuilder {
 public:
  explicit DictBuilder(Context& context);
  /// Fails for keys that cannot be keys (lists, dicts).
  void set(const Value& key, Value value);
  /// False when an equal key is there already.
  bool add_if_new(const Value& key);
  Value finish();

 private:
  Context& context_;
  std::shared_ptr<Dict> dict_;
};

// Making values. With a null context they are a template's constants: uncharged.
Value make_string(Context* context, Text text);
Value make_string(TextBuilder& builder);
Value make_markup(Context& context, std::string_view bytes);
Value make_sequence(Context* context, Type type, std::vector<Value> items,
                    const char* type_name = "");
/// A generator that fails when someone goes through it: lazy filters notice their errors then.
Value make_failing_generator(Context& context, std::string error);
Value make_list(Context& context, std::vector<Value> items);
Value make_range(Context& context, int64_t start, int64_t stop, int64_t step);
Value make_method(Context& context, const Value& self, const Builtin* builtin);
/// The message is what using it says.
Value make_undefined(Context& context, std::string message);
/// What looking up a missing attribute gives: "'dict object' has no attribute 'x'".
Value missing_attribute(Context& context, const Value& object, const Value& name);

/// Reserves charged room for `n` more values in a vector that make_sequence will take.
bool take_items(Context& context, size_t n);

// Python's views of values.
const char* type_name(const Value& value);
bool truth(const Value& value);
bool equal(Context& context, const Value& a, const Value& b);
/// -1, 0, 1; nothing (and an error) when Python cannot order them.
int compare(Context& context, const Value& a, const Value& b, const char* operation);
uint64_t hash(const Value& value);
bool is_hashable(const Value& value);
/// What stands under a key, or null; looking is charged.
const Value* lookup(Context& context, const Dict& dict, const Value& key);
int depth_of(const Value& value);
/// Length as len() gives it; -1 when the value has none.
int64_t length_of(const Value& value);

}  // namespace kvasir::jinja
