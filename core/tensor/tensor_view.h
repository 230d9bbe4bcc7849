// A named tensor as it lies in a model file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/tensor/dtype.h"

namespace kvasir {

/// Shape in the order GGUF stores it: `shape[0]` is the contiguous dimension (columns of a weight
/// matrix), `shape[1]` the rows. Unused dimensions are 1. The bytes belong to the mapped file.
struct TensorView {
  std::string name;
  DType dtype = DType::f32;
  int n_dims = 1;
  std::array<int64_t, 4> shape = {1, 1, 1, 1};
  const std::byte* data = nullptr;
  uint64_t size_bytes = 0;

  int64_t n_columns() const { return shape[0]; }
  int64_t n_rows() const { return shape[1] * shape[2] * shape[3]; }
};

}  // namespace kvasir
