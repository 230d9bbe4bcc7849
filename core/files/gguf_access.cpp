// Typed access to a parsed header.
#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/files/gguf.h"

namespace kvasir::gguf {
namespace {

std::string_view type_name(ValueType type) {
  constexpr std::string_view kNames[] = {"u8",  "i8",     "u16",   "i16", "u32", "i32", "f32",
                                         "bool", "string", "array", "u64", "i64", "f64"};
  return kNames[static_cast<size_t>(type)];
}

Error missing(std::string_view key) {
  return make_error(ErrorCode::corrupt_file, "key '{}' is missing", key);
}

Error wrong_type(const MetadataEntry& entry, std::string_view wanted) {
  return make_error(ErrorCode::corrupt_file, "key '{}' has type {}, but must be {}", entry.key,
                    type_name(entry.type), wanted);
}

template <class T>
T element(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

}  // namespace

const MetadataEntry* Header::find(std::string_view key) const {
  const auto at = std::lower_bound(
      key_order_.begin(), key_order_.end(), key,
      [&](uint32_t index, std::string_view wanted) { return metadata_[index].key < wanted; });
  if (at == key_order_.end() || metadata_[*at].key != key) return nullptr;
  return &metadata_[*at];
}

const TensorView* Header::find_tensor(std::string_view name) const {
  const auto at = std::lower_bound(
      tensor_order_.begin(), tensor_order_.end(), name,
      [&](uint32_t index, std::string_view wanted) { return tensors_[index].name < wanted; });
  if (at == tensor_order_.end() || tensors_[*at].name != name) return nullptr;
  return &tensors_[*at];
}

Result<std::string_view> Header::get_string(std::string_view key) const {
  const auto* entry = find(key);
  if (entry == nullptr) return missing(key);
  if (const auto* text = std::get_if<std::string_view>(&entry->value)) return *text;
  return wrong_type(*entry, "a string");
}

Result<int64_t> Header::get_int(std::string_view key) const {
  const auto* entry = find(key);
  if (entry == nullptr) return missing(key);
  if (const auto* value = std::get_if<int64_t>(&entry->value)) return *value;
  if (const auto* value = std::get_if<uint64_t>(&entry->value)) {
    if (*value <= INT64_MAX) return static_cast<int64_t>(*value);
    return make_error(ErrorCode::corrupt_file, "key '{}' is {}, which is too large", key, *value);
  }
  return wrong_type(*entry, "an integer");
}

Result<double> Header::get_float(std::string_view key) const {
  const auto* entry = find(key);
  if (entry == nullptr) return missing(key);
  if (const auto* value = std::get_if<double>(&entry->value)) return *value;
  if (std::holds_alternative<bool>(entry->value)) return wrong_type(*entry, "a number");
  auto integer = get_int(key);
  if (integer) return static_cast<double>(*integer);
  return wrong_type(*entry, "a number");
}

Result<bool> Header::get_bool(std::string_view key) const {
  const auto* entry = find(key);
  if (entry == nullptr) return missing(key);
  if (const auto* value = std::get_if<bool>(&entry->value)) return *value;
  return wrong_type(*entry, "a boolean");
}

Result<std::string_view> Header::string_or(std::string_view key, std::string_view fallback) const {
  if (find(key) == nullptr) return fallback;
  return get_string(key);
}

Result<int64_t> Header::int_or(std::string_view key, int64_t fallback) const {
  if (find(key) == nullptr) return fallback;
  return get_int(key);
}

Result<double> Header::float_or(std::string_view key, double fallback) const {
  if (find(key) == nullptr) return fallback;
  return get_float(key);
}

Result<bool> Header::bool_or(std::string_view key, bool fallback) const {
  if (find(key) == nullptr) return fallback;
  return get_bool(key);
}

Result<std::span<const std::string_view>> Header::get_strings(std::string_view key) const {
  const auto* entry = find(key);
  if (entry == nullptr) return missing(key);
  const auto* array = std::get_if<Array>(&entry->value);
  if (array == nullptr || array->element_type != ValueType::string)
    return wrong_type(*entry, "an array of strings");
  return std::span<const std::string_view>(array->strings);
}

Result<std::vector<float>> Header::get_floats(std::string_view key) const {
  const auto* entry = find(key);
  if (entry == nullptr) return missing(key);
  const auto* array = std::get_if<Array>(&entry->value);
  if (array == nullptr) return wrong_type(*entry, "an array of f32");
  std::vector<float> values(array->count);
  for (size_t i = 0; i < values.size(); ++i) {
    if (array->element_type == ValueType::f32) {
      values[i] = element<float>(array->raw.data() + i * 4);
    } else if (array->element_type == ValueType::f64) {
      values[i] = static_cast<float>(element<double>(array->raw.data() + i * 8));
    } else {
      return wrong_type(*entry, "an array of f32");
    }
  }
  return values;
}

Result<std::vector<int32_t>> Header::get_ints(std::string_view key) const {
  const auto* entry = find(key);
  if (entry == nullptr) return missing(key);
  const auto* array = std::get_if<Array>(&entry->value);
  if (array == nullptr) return wrong_type(*entry, "an array of integers");
  std::vector<int32_t> values(array->count);
  for (size_t i = 0; i < values.size(); ++i) {
    const std::byte* raw = array->raw.data();
    switch (array->element_type) {
      case ValueType::u8: values[i] = element<uint8_t>(raw + i); break;
      case ValueType::i8: values[i] = element<int8_t>(raw + i); break;
      case ValueType::u16: values[i] = element<uint16_t>(raw + i * 2); break;
      case ValueType::i16: values[i] = element<int16_t>(raw + i * 2); break;
      case ValueType::i32: values[i] = element<int32_t>(raw + i * 4); break;
      case ValueType::u32: {
        const auto value = element<uint32_t>(raw + i * 4);
        if (value > INT32_MAX)
          return make_error(ErrorCode::corrupt_file, "element {} of key '{}' is {}, which is too large", i, key, value);
        values[i] = static_cast<int32_t>(value);
        break;
      }
      default: return wrong_type(*entry, "an array of integers");
    }
  }
  return values;
}

}  // namespace kvasir::gguf
