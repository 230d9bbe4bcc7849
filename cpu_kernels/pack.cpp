// Weight matrices from the file's order to panels of 16 rows, and single rows back.
#include <cmath>
#include <cstring>

#include "cpu_kernels/formats/format.h"
#include "cpu_kernels/formats/rows.h"
#include "cpu_kernels/kernels.h"
#include "cpu_kernels/scalar/half.h"

namespace kvasir::kernels {
namespace {

int64_t element_bytes(WeightFormat format) {
  return format == WeightFormat::f32 ? 4 : 2;
}

bool is_finite_bfloat(uint16_t bits) {
  return (bits & 0x7F80U) != 0x7F80U;
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

/// Group by group, so that the group's lines stay in the first cache while its 16 rows arrive.
bool pack_quantized(const formats::Format& format, const std::byte* source, size_t row_bytes,
                    int64_t rows, int64_t n_columns, std::byte* panel) {
  const int64_t n_groups = n_columns / format.group_columns;
  const auto group_source =
      static_cast<size_t>(format.group_columns / format.block_columns * format.block_bytes);
  const int64_t scales_part = formats::scales_part_bytes(format, n_groups);
  std::memset(panel, 0, static_cast<size_t>(scales_part));
  std::byte* codes = panel + scales_part;
  bool finite = true;
  for (int64_t g = 0; g < n_groups; ++g) {
    std::byte* group_codes = codes + g * format.code_bytes;
    if (rows < kPanelRows) std::memset(group_codes, 0, static_cast<size_t>(format.code_bytes));
    for (int64_t r = 0; r < rows; ++r) {
      finite = format.pack(source + static_cast<size_t>(r) * row_bytes +
                               static_cast<size_t>(g) * group_source,
                           r, panel + g * format.scale_bytes, group_codes) &&
               finite;
    }
  }
  return finite;
}

void unpack_dense(const PackedMatrix& weights, const std::byte* panel, int64_t r, float* values) {
  for (int64_t k = 0; k < weights.n_columns; ++k) {
    const std::byte* at = panel + (k * kPanelRows + r) * element_bytes(weights.format);
    if (weights.format == WeightFormat::f32) {
      std::memcpy(values + k, at, 4);
    } else if (weights.format == WeightFormat::f16) {
      values[k] = formats::half_at(at);
    } else {
      const uint32_t bits = static_cast<uint32_t>(formats::load_u16(at)) << 16;
      std::memcpy(values + k, &bits, 4);
    }
  }
}

}  // namespace

InputForm input_form(WeightFormat format) {
  const formats::Format* quantized = formats::find_format(format);
  if (quantized == nullptr) return InputForm::floats;
  return quantized->group_columns == kGroupColumns ? InputForm::groups : InputForm::wide_groups;
}

int64_t format_columns(WeightFormat format) {
  const formats::Format* quantized = formats::find_format(format);
  return quantized == nullptr ? 1 : quantized->group_columns;
}

const char* format_name(WeightFormat format) {
  static constexpr const char* kNames[] = {
      "f32",   "f16",     "bf16",  "q4_0",  "q4_1",  "q5_0",  "q5_1",   "q8_0",    "iq4_nl",
      "mxfp4", "q2_k",    "q3_k",  "q4_k",  "q5_k",  "q6_k",  "iq4_xs", "iq2_xxs", "iq2_xs",
      "iq2_s", "iq3_xxs", "iq3_s", "iq1_s", "iq1_m", "tq1_0", "tq2_0"};
  static_assert(sizeof(kNames) / sizeof(kNames[0]) == static_cast<size_t>(WeightFormat::count));
  return format < WeightFormat::count ? kNames[static_cast<size_t>(format)] : "?";
}

size_t packed_panel_bytes(WeightFormat format, int64_t n_columns) {
  const formats::Format* quantized = formats::find_format(format);
  if (quantized == nullptr)
    return static_cast<size_t>((n_columns * kPanelRows * element_bytes(format) + 63) / 64 * 64);
  const int64_t n_groups = n_columns / quantized->group_columns;
  return static_cast<size_t>(formats::scales_part_bytes(*quantized, n_groups) +
                             n_groups * quantized->code_bytes);
}

bool pack_panel(WeightFormat format, const std::byte* source, size_t source_row_bytes,
                int64_t n_rows, int64_t n_columns, int64_t panel, std::byte* destination) {
  const int64_t first = panel * kPanelRows;
  const int64_t rows = n_rows - first < kPanelRows ? n_rows - first : int64_t{kPanelRows};
  const std::byte* start = source + static_cast<size_t>(first) * source_row_bytes;
  switch (format) {
    case WeightFormat::f32:
      return pack_dense<float>(start, source_row_bytes, rows, n_columns, destination,
                               [](float v) { return std::isfinite(v); });
    case WeightFormat::f16:
      return pack_dense<uint16_t>(start, source_row_bytes, rows, n_columns, destination,
                                  formats::is_finite_half);
    case WeightFormat::bf16:
      return pack_dense<uint16_t>(start, source_row_bytes, rows, n_columns, destination,
                                  is_finite_bfloat);
    default:
      return pack_quantized(*formats::find_format(format), start, source_row_bytes, rows, n_columns,
                            destination);
  }
}

void unpack_row(const PackedMatrix& weights, int64_t row, float* values) {
  const std::byte* panel =
      weights.panels + static_cast<size_t>(row / kPanelRows) * weights.panel_bytes;
  const formats::Format* format = formats::find_format(weights.format);
  if (format == nullptr) {
    unpack_dense(weights, panel, row % kPanelRows, values);
    return;
  }
  const int64_t n_groups = weights.n_columns / format->group_columns;
  const int64_t sub_columns = format->group_columns / format->n_sub_blocks;
  const std::byte* codes = panel + formats::scales_part_bytes(*format, n_groups);
  for (int64_t g = 0; g < n_groups; ++g) {
    formats::RowGroup group;
    format->read(panel + g * format->scale_bytes, codes + g * format->code_bytes, row % kPanelRows,
                 group);
    for (int64_t c = 0; c < format->group_columns; ++c) {
      const int64_t s = c / sub_columns;
      float value =
          (group.d * static_cast<float>(group.scales[s])) * static_cast<float>(group.codes[c]);
      if (format->has_minimum) value = value + group.m * static_cast<float>(group.minimums[s]);
      values[g * format->group_columns + c] = value;
    }
  }
}

}  // namespace kvasir::kernels
