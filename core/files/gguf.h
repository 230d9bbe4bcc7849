// GGUF v2/v3 reader (format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
// The file is hostile until proved otherwise: every count, length and offset is checked against
// the bytes that are there, in 64-bit arithmetic that cannot wrap.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/files/mapped_file.h"
#include "core/tensor/tensor_view.h"
#include "kvasir/result.h"

namespace kvasir::gguf {

/// Metadata value types; the values are those of the format.
enum class ValueType : uint32_t {
  u8 = 0, i8 = 1, u16 = 2, i16 = 3, u32 = 4, i32 = 5, f32 = 6, boolean = 7,
  string = 8, array = 9, u64 = 10, i64 = 11, f64 = 12,
};

/// An array of strings is kept as views into the file, any other array as its raw bytes.
struct Array {
  ValueType element_type = ValueType::u8;
  uint64_t count = 0;
  std::span<const std::byte> raw;          ///< little-endian elements, unaligned; not for strings
  std::vector<std::string_view> strings;   ///< for strings only
};

using Value = std::variant<uint64_t, int64_t, double, bool, std::string_view, Array>;

struct MetadataEntry {
  std::string_view key;
  ValueType type;
  Value value;
};

/// The parsed header: metadata in file order and tensor descriptions whose bytes lie inside
/// `bytes`. Views point into `bytes`, which must outlive it. Immutable; reading is thread-safe.
class Header {
 public:
  /// Errors (corrupt_file, unsupported) name the key or tensor at fault. No recursion on input,
  /// time and memory linear in the bytes present.
  static Result<Header> parse(std::span<const std::byte> bytes);

  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }
  const std::vector<MetadataEntry>& metadata() const { return metadata_; }
  const std::vector<TensorView>& tensors() const { return tensors_; }

  const MetadataEntry* find(std::string_view key) const;
  const TensorView* find_tensor(std::string_view name) const;

  // Typed access. `get_*` fails with corrupt_file naming the key when it is missing or of another
  // type; `*_or` gives the default when missing, and still fails on another type. Integers of any
  // width are accepted when the value fits.
  Result<std::string_view> get_string(std::string_view key) const;
  Result<int64_t> get_int(std::string_view key) const;
  Result<double> get_float(std::string_view key) const;
  Result<bool> get_bool(std::string_view key) const;
  Result<std::string_view> string_or(std::string_view key, std::string_view fallback) const;
  Result<int64_t> int_or(std::string_view key, int64_t fallback) const;
  Result<double> float_or(std::string_view key, double fallback) const;
  Result<bool> bool_or(std::string_view key, bool fallback) const;
  Result<std::span<const std::string_view>> get_strings(std::string_view key) const;
  Result<std::vector<float>> get_floats(std::string_view key) const;
  Result<std::vector<int32_t>> get_ints(std::string_view key) const;

 private:
  friend class HeaderReader;
  uint32_t version_ = 0;
  uint64_t alignment_ = 32;
  std::vector<MetadataEntry> metadata_;   // file order
  std::vector<TensorView> tensors_;       // file order
  std::vector<uint32_t> key_order_;       // indices sorted by key
  std::vector<uint32_t> tensor_order_;    // indices sorted by name
};

/// A GGUF file on disk: the mapping and its header together.
struct File {
  MappedFile mapping;
  Header header;

  static Result<std::unique_ptr<File>> open(const std::string& path);
};

}  // namespace kvasir::gguf
