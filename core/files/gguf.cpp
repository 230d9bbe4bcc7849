#include "core/files/gguf.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/base/checked.h"
#include "core/base/error.h"

namespace kvasir::gguf {
namespace {

constexpr uint64_t kMaxNameBytes = 65535;  // keys; the format's own limit
constexpr uint64_t kMaxTensorNameBytes = 255;

/// Bytes of one element; 0 for strings and arrays.
uint64_t scalar_bytes(ValueType type) {
  switch (type) {
    case ValueType::u8:
    case ValueType::i8:
    case ValueType::boolean: return 1;
    case ValueType::u16:
    case ValueType::i16: return 2;
    case ValueType::u32:
    case ValueType::i32:
    case ValueType::f32: return 4;
    case ValueType::u64:
    case ValueType::i64:
    case ValueType::f64: return 8;
    case ValueType::string:
    case ValueType::array: break;
  }
  return 0;
}

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

/// Text from a file as it may stand in a message: short, printable.
std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 80)) {
    if (c >= 32 && c < 127) {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text.size() > 80 ? out + "..." : out;
}

Value scalar_value(ValueType type, const std::byte* at) {
  switch (type) {
    case ValueType::u8: return uint64_t{load<uint8_t>(at)};
    case ValueType::i8: return int64_t{load<int8_t>(at)};
    case ValueType::u16: return uint64_t{load<uint16_t>(at)};
    case ValueType::i16: return int64_t{load<int16_t>(at)};
    case ValueType::u32: return uint64_t{load<uint32_t>(at)};
    case ValueType::i32: return int64_t{load<int32_t>(at)};
    case ValueType::f32: return double{load<float>(at)};
    case ValueType::u64: return load<uint64_t>(at);
    case ValueType::i64: return load<int64_t>(at);
    case ValueType::f64: return load<double>(at);
    case ValueType::boolean: return load<uint8_t>(at) != 0;
    default: return uint64_t{0};
  }
}

}  // namespace

/// Walks the header once. Every read is checked against the bytes that remain.
class HeaderReader {
 public:
  explicit HeaderReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Result<Header> read() {
    if (auto s = read_start(); !s) return std::move(s).error();
    for (uint64_t i = 0; i < n_metadata_; ++i) {
      if (auto s = read_metadata(i); !s) return std::move(s).error();
    }
    if (auto s = index_keys(); !s) return std::move(s).error();
    if (auto s = read_alignment(); !s) return std::move(s).error();
    for (uint64_t i = 0; i < n_tensors_; ++i) {
      if (auto s = read_tensor(i); !s) return std::move(s).error();
    }
    if (auto s = index_tensors(); !s) return std::move(s).error();
    if (auto s = place_tensors(); !s) return std::move(s).error();
    return std::move(header_);
  }

 private:
  uint64_t remaining() const { return bytes_.size() - at_; }

  template <class... Args>
  static Error corrupt(fmt::format_string<Args...> text, Args&&... args) {
    return make_error(ErrorCode::corrupt_file, text, std::forward<Args>(args)...);
  }

  template <class T>
  bool take(T& value) {
    if (remaining() < sizeof(T)) return false;
    value = load<T>(bytes_.data() + at_);
    at_ += sizeof(T);
    return true;
  }

  /// A length-prefixed string; `what` names it in the error.
  Result<std::string_view> take_string(const std::string& what) {
    uint64_t length = 0;
    if (!take(length)) return corrupt("the file ends inside {}", what);
    if (length > remaining()) {
      return corrupt("{} claims {} bytes, but only {} remain in the file", what, length,
                     remaining());
    }
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data() + at_), length);
    at_ += length;
    return text;
  }

  Status read_start() {
    if (bytes_.empty()) return corrupt("the file is empty");
    if (bytes_.size() < 4 || std::memcmp(bytes_.data(), "GGUF", 4) != 0) {
      const std::string_view start(reinterpret_cast<const char*>(bytes_.data()),
                                   std::min<size_t>(bytes_.size(), 16));
      const bool markup = start.find('<') == 0;
      return corrupt("not a GGUF file: it starts with '{}'{}", shown(start),
                     markup ? " (a web page instead of the model?)" : "");
    }
    at_ = 4;
    uint32_t version = 0;
    if (!take(version)) return corrupt("the file ends inside the header");
    if (version != 2 && version != 3) {
      const uint32_t swapped = __builtin_bswap32(version);
      if (swapped == 2 || swapped == 3) {
        return make_error(ErrorCode::unsupported,
                          "the GGUF file is big-endian (version {} byte-swapped), which is not "
                          "supported",
                          swapped);
      }
      return make_error(ErrorCode::unsupported, "GGUF version {} is not supported (2 and 3 are)",
                        version);
    }
    header_.version_ = version;
    if (!take(n_tensors_) || !take(n_metadata_)) return corrupt("the file ends inside the header");
    // The shortest entries: key length, one letter, type, one byte; name length, one letter,
    // dimension count, one dimension, type, offset.
    constexpr uint64_t kLeastMetadata = 8 + 1 + 4 + 1;
    constexpr uint64_t kLeastTensor = 8 + 1 + 4 + 8 + 4 + 8;
    if (n_metadata_ > remaining() / kLeastMetadata) {
      return corrupt("the header claims {} metadata keys, but only {} bytes remain in the file",
                     n_metadata_, remaining());
    }
    if (n_tensors_ > remaining() / kLeastTensor) {
      return corrupt("the header claims {} tensors, but only {} bytes remain in the file",
                     n_tensors_, remaining());
    }
    header_.metadata_.reserve(n_metadata_);
    header_.tensors_.reserve(n_tensors_);
    return {};
  }

  Status read_metadata(uint64_t index) {
    auto key = take_string(fmt::format("the name of metadata key {} of {}", index + 1, n_metadata_));
    if (!key) return std::move(key).error();
    if (key->empty()) return corrupt("metadata key {} of {} has an empty name", index + 1, n_metadata_);
    if (key->size() > kMaxNameBytes) {
      return corrupt("the name of metadata key {} ('{}') has {} bytes; at most {} are allowed",
                     index + 1, shown(*key), key->size(), kMaxNameBytes);
    }
    const std::string name = shown(*key);
    uint32_t type_id = 0;
    if (!take(type_id)) return corrupt("the file ends inside key '{}'", name);
    if (type_id > static_cast<uint32_t>(ValueType::f64))
      return corrupt("key '{}' has the unknown value type {}", name, type_id);
    const auto type = static_cast<ValueType>(type_id);
    auto value = read_value(type, name);
    if (!value) return std::move(value).error();
    header_.metadata_.push_back({*key, type, std::move(*value)});
    return {};
  }

  Result<Value> read_value(ValueType type, const std::string& name) {
    if (type == ValueType::array) return read_array(name);
    if (type == ValueType::string) {
      auto text = take_string(fmt::format("the value of key '{}'", name));
      if (!text) return std::move(text).error();
      return Value(*text);
    }
    const uint64_t size = scalar_bytes(type);
    if (remaining() < size) return corrupt("the file ends inside key '{}'", name);
    const std::byte* at = bytes_.data() + at_;
    at_ += size;
    if (type == ValueType::boolean && load<uint8_t>(at) > 1)
      return corrupt("key '{}' is a boolean of value {}", name, load<uint8_t>(at));
    return scalar_value(type, at);
  }

  Result<Value> read_array(const std::string& name) {
    uint32_t type_id = 0;
    Array array;
    if (!take(type_id) || !take(array.count)) return corrupt("the file ends inside key '{}'", name);
    if (type_id > static_cast<uint32_t>(ValueType::f64))
      return corrupt("key '{}' is an array of the unknown type {}", name, type_id);
    array.element_type = static_cast<ValueType>(type_id);
    if (array.element_type == ValueType::array)
      return make_error(ErrorCode::unsupported, "key '{}' is an array of arrays", name);
    const uint64_t least =
        array.element_type == ValueType::string ? 8 : scalar_bytes(array.element_type);
    if (array.count > remaining() / least) {
      return corrupt("key '{}' claims {} elements, but only {} bytes remain in the file", name,
                     array.count, remaining());
    }
    if (array.element_type != ValueType::string) {
      array.raw = bytes_.subspan(at_, array.count * least);
      at_ += array.count * least;
      if (array.element_type == ValueType::boolean) {
        for (uint64_t i = 0; i < array.count; ++i) {
          if (load<uint8_t>(array.raw.data() + i) > 1)
            return corrupt("element {} of key '{}' is a boolean of value {}", i, name,
                           load<uint8_t>(array.raw.data() + i));
        }
      }
      return Value(std::move(array));
    }
    array.strings.reserve(array.count);
    for (uint64_t i = 0; i < array.count; ++i) {
      uint64_t length = 0;
      if (!take(length) || length > remaining())
        return corrupt("element {} of key '{}' runs past the end of the file", i, name);
      array.strings.emplace_back(reinterpret_cast<const char*>(bytes_.data() + at_), length);
      at_ += length;
    }
    return Value(std::move(array));
  }

  Status index_keys() {
    auto& order = header_.key_order_;
    order.resize(header_.metadata_.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto& all = header_.metadata_;
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return all[a].key < all[b].key; });
    for (size_t i = 1; i < order.size(); ++i) {
      if (all[order[i]].key == all[order[i - 1]].key)
        return corrupt("key '{}' occurs twice", shown(all[order[i]].key));
    }
    return {};
  }

  Status read_alignment() {
    auto alignment = header_.int_or("general.alignment", 32);
    if (!alignment) return std::move(alignment).error();
    const bool power_of_two = *alignment > 0 && (*alignment & (*alignment - 1)) == 0;
    if (!power_of_two || *alignment < 8 || *alignment > (int64_t{1} << 30)) {
      return corrupt("key 'general.alignment' is {}, but must be a power of two from 8 to 2^30",
                     *alignment);
    }
    header_.alignment_ = static_cast<uint64_t>(*alignment);
    return {};
  }

  Status read_tensor(uint64_t index) {
    auto name = take_string(fmt::format("the name of tensor {} of {}", index + 1, n_tensors_));
    if (!name) return std::move(name).error();
    if (name->empty()) return corrupt("tensor {} of {} has an empty name", index + 1, n_tensors_);
    if (name->size() > kMaxTensorNameBytes) {
      return corrupt("the name of tensor {} ('{}') has {} bytes; at most {} are allowed", index + 1,
                     shown(*name), name->size(), kMaxTensorNameBytes);
    }
    TensorView tensor;
    tensor.name = std::string(*name);
    const std::string label = shown(*name);
    uint32_t n_dims = 0;
    if (!take(n_dims)) return corrupt("the file ends inside tensor '{}'", label);
    if (n_dims < 1 || n_dims > 4)
      return corrupt("tensor '{}' has {} dimensions, but 1 to 4 are possible", label, n_dims);
    tensor.n_dims = static_cast<int>(n_dims);
    uint64_t elements = 1;
    for (uint32_t d = 0; d < n_dims; ++d) {
      uint64_t size = 0;
      if (!take(size)) return corrupt("the file ends inside tensor '{}'", label);
      const auto product = checked_multiply(elements, size);
      if (size == 0 || size > INT64_MAX || !product || *product > INT64_MAX) {
        return corrupt("tensor '{}' has the impossible size {} in dimension {}", label, size, d);
      }
      tensor.shape[d] = static_cast<int64_t>(size);
      elements = *product;
    }
    uint32_t type_id = 0;
    uint64_t offset = 0;
    if (!take(type_id) || !take(offset)) return corrupt("the file ends inside tensor '{}'", label);
    const auto traits = find_dtype(type_id);
    if (!traits) return corrupt("tensor '{}' has the unknown type {}", label, type_id);
    tensor.dtype = traits->dtype;
    if (tensor.shape[0] % traits->block_elements != 0) {
      return corrupt("tensor '{}' has rows of {} elements, which are not whole blocks of {} ({})",
                     label, tensor.shape[0], traits->block_elements, traits->name);
    }
    const auto size_bytes =
        checked_multiply(elements / static_cast<uint64_t>(traits->block_elements),
                         static_cast<uint64_t>(traits->block_bytes));
    if (!size_bytes) return corrupt("the size of tensor '{}' overflows", label);
    tensor.size_bytes = *size_bytes;
    offsets_.push_back(offset);
    header_.tensors_.push_back(std::move(tensor));
    return {};
  }

  Status index_tensors() {
    auto& order = header_.tensor_order_;
    order.resize(header_.tensors_.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto& all = header_.tensors_;
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return all[a].name < all[b].name; });
    for (size_t i = 1; i < order.size(); ++i) {
      if (all[order[i]].name == all[order[i - 1]].name)
        return corrupt("tensor '{}' occurs twice", shown(all[order[i]].name));
    }
    return {};
  }

  Status place_tensors() {
    auto& tensors = header_.tensors_;
    if (tensors.empty()) return {};
    const uint64_t alignment = header_.alignment_;
    const uint64_t data_start = (at_ + alignment - 1) / alignment * alignment;
    const uint64_t data_size = data_start <= bytes_.size() ? bytes_.size() - data_start : 0;
    for (size_t i = 0; i < tensors.size(); ++i) {
      auto& tensor = tensors[i];
      const uint64_t offset = offsets_[i];
      if (offset % alignment != 0) {
        return corrupt("tensor '{}' starts at offset {}, which is not a multiple of {}",
                       shown(tensor.name), offset, alignment);
      }
      const auto end = checked_add(offset, tensor.size_bytes);
      if (!end || *end > data_size) {
        return corrupt("tensor '{}' needs {} bytes at offset {}, but the file holds only {}",
                       shown(tensor.name), tensor.size_bytes, offset, data_size);
      }
      tensor.data = bytes_.data() + data_start + offset;
    }
    std::vector<uint32_t> order(tensors.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return offsets_[a] < offsets_[b]; });
    for (size_t i = 1; i < order.size(); ++i) {
      const auto& before = tensors[order[i - 1]];
      if (before.data + before.size_bytes > tensors[order[i]].data) {
        return corrupt("tensors '{}' and '{}' overlap", shown(before.name),
                       shown(tensors[order[i]].name));
      }
    }
    return {};
  }

  std::span<const std::byte> bytes_;
  uint64_t at_ = 0;
  uint64_t n_tensors_ = 0;
  uint64_t n_metadata_ = 0;
  std::vector<uint64_t> offsets_;
  Header header_;
};

Result<Header> Header::parse(std::span<const std::byte> bytes) { return HeaderReader(bytes).read(); }

Result<std::unique_ptr<File>> File::open(const std::string& path) {
  auto mapping = MappedFile::open(path);
  if (!mapping) return std::move(mapping).error();
  auto header = Header::parse(mapping->bytes());
  if (!header) {
    Error error = std::move(header).error();
    error.message = "'" + path + "': " + error.message;
    return error;
  }
  auto file = std::make_unique<File>();
  file->mapping = std::move(*mapping);
  file->header = std::move(*header);
  return file;
}

}  // namespace kvasir::gguf
