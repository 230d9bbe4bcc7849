// Weight matrices as files have them, packed, and activations: what tests of products share.
#pragma once

#include "cpu_kernels/scalar/half.h"
#include "tests/kernels/isas.h"

namespace kvasir::kernels::test {

inline constexpr size_t kBlockBytes[] = {4, 2, 20, 34};  // of a file's block, by WeightFormat
inline constexpr int64_t kBlockColumns[] = {1, 1, 32, 32};

/// `extreme`: all weight codes of a block are the same extreme one, all activations +-127; every
/// other group of activations has one sign, so that its sums of pairs reach their bounds.
enum class Codes { random, extreme };

/// A matrix as a file has it: row-major blocks.
inline std::vector<std::byte> file_matrix(WeightFormat format, int64_t rows, int64_t columns,
                                          unsigned seed, Codes kind) {
  std::mt19937 random(seed);
  const auto f = static_cast<size_t>(format);
  const size_t row_bytes = static_cast<size_t>(columns / kBlockColumns[f]) * kBlockBytes[f];
  std::vector<std::byte> bytes(row_bytes * static_cast<size_t>(rows));
  const auto put_half = [&](std::byte* at, float v) {
    const uint16_t h = scalar::float_to_half(v);
    std::memcpy(at, &h, 2);
  };
  const auto unit = [&] { return static_cast<float>(random() >> 8) / 8388608.0F - 1.0F; };
  for (size_t at = 0; at < bytes.size(); at += kBlockBytes[f]) {
    std::byte* block = bytes.data() + at;
    if (format == WeightFormat::f32) {
      const float v = unit();
      std::memcpy(block, &v, 4);
    } else if (format == WeightFormat::f16) {
      put_half(block, unit());
    } else {
      const size_t scales = format == WeightFormat::q4_1 ? 4 : 2;
      put_half(block, unit() * 0.1F);
      if (format == WeightFormat::q4_1) put_half(block + 2, unit());
      const bool negative = random() % 2 == 0;
      for (size_t i = scales; i < kBlockBytes[f]; ++i) {
        int code = static_cast<int>(random() % 256);
        if (kind == Codes::extreme)
          code = format == WeightFormat::q4_1 ? 0xFF : (negative ? 0x80 : 0x7F);
        block[i] = static_cast<std::byte>(code);
      }
    }
  }
  return bytes;
}

struct Packed {
  std::vector<std::byte> memory;
  PackedMatrix matrix;
};

inline Packed pack(WeightFormat format, const std::vector<std::byte>& source, int64_t rows,
                   int64_t columns) {
  const auto f = static_cast<size_t>(format);
  Packed packed;
  const size_t panel_bytes = packed_panel_bytes(format, columns);
  const auto n_panels = static_cast<size_t>((rows + 15) / 16);
  packed.memory.resize(panel_bytes * n_panels + 128, std::byte{0xFF});  // NaN around the panels
  auto* base = reinterpret_cast<std::byte*>(
      (reinterpret_cast<uintptr_t>(packed.memory.data()) + 63) / 64 * 64);
  const size_t row_bytes = static_cast<size_t>(columns / kBlockColumns[f]) * kBlockBytes[f];
  for (size_t p = 0; p < n_panels; ++p)
    REQUIRE(pack_panel(format, source.data(), row_bytes, rows, columns, static_cast<int64_t>(p),
                       base + p * panel_bytes));
  packed.matrix = {format, rows, columns, base, panel_bytes};
  return packed;
}

/// Activations in both forms, quantised by scalar; padding holds NaN or -128.
struct Inputs {
  Inputs(int64_t rows, int64_t columns, unsigned seed, Codes kind)
      : stride((columns + 63) / 64 * 64),
        values(static_cast<size_t>(rows * (columns + 3))),
        codes(static_cast<size_t>(rows * stride)),
        groups(static_cast<size_t>(rows * (columns / 32))) {
    auto random = random_floats(static_cast<size_t>(rows * columns), seed, 3.0F);
    if (kind == Codes::extreme) {
      for (size_t i = 0; i < random.size(); ++i) {
        const size_t decides = i / 32 % 2 == 0 ? i / 32 * 32 : i;
        random[i] = random[decides] > 0 ? 3.0F : -3.0F;
      }
    }
    for (int64_t m = 0; m < rows; ++m) {
      float* row = values.data() + m * (columns + 3);
      std::copy_n(random.data() + m * columns, columns, row);
      scalar_kernels().quantize(row, columns / 32 * 32, codes.data() + m * stride,
                                groups.data() + m * (columns / 32));
    }
    view = {rows,         columns, values.data(), columns + 3,
            codes.data(), stride,  groups.data(), columns / 32};
  }
  int64_t stride;
  Guarded<float> values;
  Guarded<int8_t> codes;
  Guarded<ActivationGroup> groups;
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

inline constexpr WeightFormat kFormats[] = {WeightFormat::f32, WeightFormat::f16,
                                            WeightFormat::q4_1, WeightFormat::q8_0};
inline constexpr const char* kFormatNames[] = {"f32", "f16", "q4_1", "q8_0"};

}  // namespace kvasir::kernels::test
