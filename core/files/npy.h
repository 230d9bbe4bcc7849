// NumPy's array files (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::npy {

/// The element types read and written here; little-endian.
enum class Element : uint8_t { f16, f32, i32 };

std::string_view element_name(Element element);  ///< as NumPy says it: "float16"
size_t element_bytes(Element element);

/// A view of an array in row-major order. `data` holds exactly the shape's elements and may start
/// at any address.
struct Array {
  Element element = Element::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
};

/// What comes before the data of an array, format 1.0.
std::string header(Element element, std::span<const int64_t> shape);

/// Reads formats 1 to 3. The error begins with `name` and says what is wrong: other element types,
/// Fortran order, and more or fewer bytes than the shape needs are refused.
Result<Array> parse(std::span<const std::byte> bytes, std::string_view name);

}  // namespace kvasir::npy
