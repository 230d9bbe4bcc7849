// Weight matrices as files have them, packed, and activations: what tests of products share.
#pragma once

#include <functional>

#include "tests/kernels/file_blocks.h"
#include "tests/kernels/isas.h"

namespace kvasir::kernels::test {

inline std::vector<WeightFormat> formats_where(const std::function<bool(WeightFormat)>& wanted) {
  std::vector<WeightFormat> found;
  for (int i = 0; i < static_cast<int>(WeightFormat::count); ++i) {
    if (wanted(static_cast<WeightFormat>(i))) found.push_back(static_cast<WeightFormat>(i));
  }
  return found;
}
inline std::vector<WeightFormat> all_formats() {
  return formats_where([](WeightFormat) { return true; });
}
inline std::vector<WeightFormat> dense_formats() {
  return formats_where([](WeightFormat f) { return input_form(f) == InputForm::floats; });
}
inline std::vector<WeightFormat> quantized_formats() {
  return formats_where([](WeightFormat f) { return input_form(f) != InputForm::floats; });
}

struct Packed {
  std::vector<std::byte> memory;
  PackedMatrix matrix;
};

inline Packed pack(WeightFormat format, const std::vector<std::byte>& source, int64_t rows,
                   int64_t columns) {
  Packed packed;
  const size_t panel_bytes = packed_panel_bytes(format, columns);
  const auto n_panels = static_cast<size_t>((rows + 15) / 16);
  packed.memory.resize(panel_bytes * n_panels + 128, std::byte{0xFF});  // NaN around the panels
  auto* base = reinterpret_cast<std::byte*>(
      (reinterpret_cast<uintptr_t>(packed.memory.data()) + 63) / 64 * 64);
  const size_t row_bytes = file_row_bytes(format, columns);
  for (size_t p = 0; p < n_panels; ++p)
    REQUIRE(pack_panel(format, source.data(), row_bytes, rows, columns, static_cast<int64_t>(p),
                       base + p * panel_bytes));
  packed.matrix = {format, rows, columns, base, panel_bytes};
  return packed;
}

/// Activations in all forms, quantised by scalar; padding holds NaN or -128.
struct Inputs {
  Inputs(int64_t rows, int64_t columns, unsigned seed, Codes kind)
      : stride((columns + 63) / 64 * 64),
        values(static_cast<size_t>(rows * (columns + 3))),
        codes(static_cast<size_t>(rows * stride)),
        groups(static_cast<size_t>(rows * (columns / 32))),
        wide_codes(static_cast<size_t>(rows * stride)),
        wide_groups(static_cast<size_t>(rows * (columns / 256))) {
    auto random = random_floats(static_cast<size_t>(rows * columns), seed, 3.0F);
    if (kind == Codes::extreme) {
      for (size_t i = 0; i < random.size(); ++i) {
        const size_t decides = i / 32 % 2 == 0 ? i / 32 * 32 : i;
        random[i] = random[decides] > 0 ? 3.0F : -3.0F;
      }
    }
    view = {rows,         columns,       values.data(), columns + 3,       codes.data(),
            stride,       groups.data(), columns / 32,  wide_codes.data(), wide_groups.data(),
            columns / 256};
    for (int64_t m = 0; m < rows; ++m) {
      std::copy_n(random.data() + m * columns, columns, values.data() + m * (columns + 3));
      quantize(m);
    }
  }
  /// The forms of one row, from its floats.
  void quantize(int64_t m) {
    const float* row = values.data() + m * view.values_stride;
    scalar_kernels().quantize(row, view.n_columns / 32 * 32, codes.data() + m * stride,
                              groups.data() + m * view.groups_stride);
    scalar_kernels().quantize_wide(row, view.n_columns / 256 * 256, wide_codes.data() + m * stride,
                                   wide_groups.data() + m * view.wide_groups_stride);
  }
  /// What a product with `format` reads as row m, column k.
  double read(WeightFormat format, int64_t m, int64_t k) const {
    switch (input_form(format)) {
      case InputForm::groups:
        return static_cast<double>(view.groups[m * view.groups_stride + k / 32].scale) *
               view.codes[m * stride + k];
      case InputForm::wide_groups:
        return static_cast<double>(view.wide_groups[m * view.wide_groups_stride + k / 256].scale) *
               view.wide_codes[m * stride + k];
      default:
        return static_cast<double>(view.values[m * view.values_stride + k]);
    }
  }
  int64_t stride;
  Guarded<float> values;
  Guarded<int8_t> codes;
  Guarded<ActivationGroup> groups;
  Guarded<int8_t> wide_codes;
  Guarded<WideActivationGroup> wide_groups;
  Activations view;
};

inline std::vector<float> run(const KernelTable& table, const PackedMatrix& w, const Activations& x,
                              int64_t first, int64_t end, bool add) {
  // An odd stride and start, so that no store is aligned.
  const int64_t stride = w.n_rows + 5;
  Guarded<float> output(static_cast<size_t>(x.n_rows * stride), 1);
  for (int64_t i = 0; i < x.n_rows * stride; ++i)
    output[static_cast<size_t>(i)] = static_cast<float>(i % 97) * 0.25F;
  Guarded<std::byte> scratch(kMatmulScratchBytes);
  table.matmul[static_cast<size_t>(w.format)](
      {&w, &x, output.data(), stride, first, end, add, scratch.data()});
  REQUIRE(output.untouched_outside());
  return output.values();
}

}  // namespace kvasir::kernels::test
