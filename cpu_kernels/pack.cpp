// Weight matrices from the file's order to panels of 16 rows, and single rows back.
#include <cmath>
#include <cstring>

#include "cpu_kernels/kernels.h"
#include "cpu_kernels/scalar/half.h"

namespace kvasir::kernels {
namespace {

using scalar::half_to_float;

// GGML blocks of 32 weights (https://github.com/ggml-org/ggml): Q4_1 is d, m (half) and 16 bytes,
// byte i holding code i (low nibble) and code i + 16 (high); Q8_0 is d (half) and 32 int8.
constexpr size_t kQ4_1Block = 20;
constexpr size_t kQ8_0Block = 34;

uint16_t load_half(const std::byte* at) {
  uint16_t half;
  std::memcpy(&half, at, sizeof(half));
  return half;
}

bool is_finite_half(uint16_t half) {
  return (half & 0x7C00U) != 0x7C00U;
}

size_t scale_bytes(WeightFormat format, int64_t n_groups) {
  const auto groups = static_cast<size_t>(n_groups);
  return format == WeightFormat::q4_1 ? groups * 64 : (groups * 32 + 63) / 64 * 64;
}

bool pack_q4_1(const std::byte* source, size_t row_bytes, int64_t rows, int64_t n_groups,
               std::byte* panel) {
  std::memset(panel, 0, packed_panel_bytes(WeightFormat::q4_1, n_groups * 32));
  std::byte* codes = panel + scale_bytes(WeightFormat::q4_1, n_groups);
  for (int64_t r = 0; r < rows; ++r) {
    const std::byte* row = source + static_cast<size_t>(r) * row_bytes;
    for (int64_t g = 0; g < n_groups; ++g) {
      const std::byte* block = row + static_cast<size_t>(g) * kQ4_1Block;
      const uint16_t d = load_half(block);
      const uint16_t m = load_half(block + 2);
      if (!is_finite_half(d) || !is_finite_half(m)) return false;
      std::byte* scales = panel + g * 64 + r * 2;
      std::memcpy(scales, &d, 2);
      std::memcpy(scales + 32, &m, 2);
      // Line i (columns 4i..4i+3) is the low half of quarter i, line i + 4 the high half: column c
      // below 16 sits beside column c + 16, which is how the file pairs them too.
      for (int64_t quarter = 0; quarter < 4; ++quarter)
        std::memcpy(codes + g * 256 + quarter * 64 + r * 4, block + 4 + quarter * 4, 4);
    }
  }
  return true;
}

bool pack_q8_0(const std::byte* source, size_t row_bytes, int64_t rows, int64_t n_groups,
               std::byte* panel) {
  std::memset(panel, 0, packed_panel_bytes(WeightFormat::q8_0, n_groups * 32));
  std::byte* codes = panel + scale_bytes(WeightFormat::q8_0, n_groups);
  for (int64_t r = 0; r < rows; ++r) {
    const std::byte* row = source + static_cast<size_t>(r) * row_bytes;
    for (int64_t g = 0; g < n_groups; ++g) {
      const std::byte* block = row + static_cast<size_t>(g) * kQ8_0Block;
      const uint16_t d = load_half(block);
      if (!is_finite_half(d)) return false;
      std::memcpy(panel + g * 32 + r * 2, &d, 2);
      for (int64_t line = 0; line < 8; ++line)
        std::memcpy(codes + g * 512 + line * 64 + r * 4, block + 2 + line * 4, 4);
    }
  }
  return true;
}

template <class T, class IsFinite>
bool pack_dense(const std::byte* source, size_t row_bytes, int64_t rows, int64_t n_columns,
                std::byte* panel, const IsFinite& is_finite) {
  std::memset(panel, 0, static_cast<size_t>(n_columns) * kPanelRows * sizeof(T));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < n_columns; ++k) {
      T value;
      std::memcpy(&value,
                  source + static_cast<size_t>(r) * row_bytes + static_cast<size_t>(k) * sizeof(T),
                  sizeof(T));
      if (!is_finite(value)) return false;
      std::memcpy(panel + static_cast<size_t>(k * kPanelRows + r) * sizeof(T), &value, sizeof(T));
    }
  }
  return true;
}

}  // namespace

size_t packed_panel_bytes(WeightFormat format, int64_t n_columns) {
  const auto columns = static_cast<size_t>(n_columns);
  const size_t n_groups = columns / kGroupColumns;
  switch (format) {
    case WeightFormat::f32:
      return columns * kPanelRows * 4;
    case WeightFormat::f16:
      return (columns * kPanelRows * 2 + 63) / 64 * 64;
    case WeightFormat::q4_1:
      return scale_bytes(format, n_columns / kGroupColumns) + n_groups * 256;
    case WeightFormat::q8_0:
      return scale_bytes(format, n_columns / kGroupColumns) + n_groups * 512;
    case WeightFormat::count:
      break;
  }
  return 0;
}

bool pack_panel(WeightFormat format, const std::byte* source, size_t source_row_bytes,
                int64_t n_rows, int64_t n_columns, int64_t panel, std::byte* destination) {
  const int64_t first = panel * kPanelRows;
  const int64_t rows = n_rows - first < kPanelRows ? n_rows - first : int64_t{kPanelRows};
  const std::byte* rows_start = source + static_cast<size_t>(first) * source_row_bytes;
  const int64_t n_groups = n_columns / kGroupColumns;
  switch (format) {
    case WeightFormat::f32:
      return pack_dense<float>(rows_start, source_row_bytes, rows, n_columns, destination,
                               [](float v) { return std::isfinite(v); });
    case WeightFormat::f16:
      return pack_dense<uint16_t>(rows_start, source_row_bytes, rows, n_columns, destination,
                                  is_finite_half);
    case WeightFormat::q4_1:
      return pack_q4_1(rows_start, source_row_bytes, rows, n_groups, destination);
    case WeightFormat::q8_0:
      return pack_q8_0(rows_start, source_row_bytes, rows, n_groups, destination);
    case WeightFormat::count:
      break;
  }
  return false;
}

void unpack_row(const PackedMatrix& weights, int64_t row, float* values) {
  const std::byte* panel =
      weights.panels + static_cast<size_t>(row / kPanelRows) * weights.panel_bytes;
  const int64_t r = row % kPanelRows;
  const int64_t n_groups = weights.n_columns / kGroupColumns;
  const std::byte* codes = panel + scale_bytes(weights.format, n_groups);
  switch (weights.format) {
    case WeightFormat::f32:
      for (int64_t k = 0; k < weights.n_columns; ++k)
        std::memcpy(values + k, panel + (k * kPanelRows + r) * 4, 4);
      return;
    case WeightFormat::f16:
      for (int64_t k = 0; k < weights.n_columns; ++k)
        values[k] = half_to_float(load_half(panel + (k * kPanelRows + r) * 2));
      return;
    case WeightFormat::q4_1:
      for (int64_t g = 0; g < n_groups; ++g) {
        const float d = half_to_float(load_half(panel + g * 64 + r * 2));
        const float m = half_to_float(load_half(panel + g * 64 + 32 + r * 2));
        for (int64_t i = 0; i < 16; ++i) {
          const auto both = static_cast<uint8_t>(codes[g * 256 + i / 4 * 64 + r * 4 + i % 4]);
          values[g * 32 + i] = d * static_cast<float>(both & 15U) + m;
          values[g * 32 + i + 16] = d * static_cast<float>(both >> 4) + m;
        }
      }
      return;
    case WeightFormat::q8_0:
      for (int64_t g = 0; g < n_groups; ++g) {
        const float d = half_to_float(load_half(panel + g * 32 + r * 2));
        for (int64_t i = 0; i < 32; ++i) {
          const auto code = static_cast<int8_t>(codes[g * 512 + i / 4 * 64 + r * 4 + i % 4]);
          values[g * 32 + i] = d * static_cast<float>(code);
        }
      }
      return;
    case WeightFormat::count:
      return;
  }
}

}  // namespace kvasir::kernels
