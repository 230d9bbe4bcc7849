// The element types a model file may hold, and how their blocks are laid out.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kvasir {

/// GGML tensor types; the values are those stored in GGUF files
/// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
enum class DType : uint32_t {
  f32 = 0, f16 = 1, q4_0 = 2, q4_1 = 3, q5_0 = 6, q5_1 = 7, q8_0 = 8, q8_1 = 9,
  q2_k = 10, q3_k = 11, q4_k = 12, q5_k = 13, q6_k = 14, q8_k = 15,
  iq2_xxs = 16, iq2_xs = 17, iq3_xxs = 18, iq1_s = 19, iq4_nl = 20, iq3_s = 21, iq2_s = 22,
  iq4_xs = 23, i8 = 24, i16 = 25, i32 = 26, i64 = 27, f64 = 28, iq1_m = 29, bf16 = 30,
  tq1_0 = 34, tq2_0 = 35, mxfp4 = 39, nvfp4 = 40,
};

/// `block_elements` consecutive elements of a row occupy `block_bytes`.
struct DTypeTraits {
  DType dtype;
  std::string_view name;  ///< as GGUF tools print it: "F32", "Q4_1"
  int64_t block_elements;
  int64_t block_bytes;
};

/// The traits of a type id found in a file; nothing when the id is unknown.
std::optional<DTypeTraits> find_dtype(uint32_t gguf_type);

/// The traits of a known type.
DTypeTraits dtype_traits(DType dtype);

inline std::string_view dtype_name(DType dtype) { return dtype_traits(dtype).name; }

}  // namespace kvasir
