#include "tests/kernels/isas.h"

#include "cpu_kernels/scalar/half.h"

using namespace kvasir::kernels;        // NOLINT
using namespace kvasir::kernels::test;  // NOLINT

namespace {

constexpr size_t kBlockBytes[] = {4, 2, 20, 34};      // of a file's block, by WeightFormat
constexpr int64_t kBlockColumns[] = {1, 1, 32, 32};

enum class Codes { random, extreme };

/// A matrix as a file has it: row-major blocks.
std::vector<std::byte> file_matrix(WeightFormat format, int64_t rows, int64_t columns,
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

Packed pack(WeightFormat format, const std::vector<std::byte>& source, int64_t rows,
            int64_t columns) {
  const auto f = static_cast<size_t>(format);
  Packed packed;
  const size_t panel_bytes = packed_panel_bytes(format, columns);
  const auto n_panels = static_cast<size_t>((rows + 15) / 16);
  packed.memory.resize(panel_bytes * n_panels + 64);
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
    if (kind == Codes::extreme)
      for (auto& v : random) v = v > 0 ? 3.0F : -3.0F;
    for (int64_t m = 0; m < rows; ++m) {
      float* row = values.data() + m * (columns + 3);
      std::copy_n(random.data() + m * columns, columns, row);
      scalar_kernels().quantize(row, columns / 32 * 32, codes.data() + m * stride,
                                groups.data() + m * (columns / 32));
    }
    view = {rows, columns, values.data(), columns + 3, codes.data(), stride, groups.data(),
            columns / 32};
  }
  int64_t stride;
  Guarded<float> values;
  Guarded<int8_t> codes;
  Guarded<ActivationGroup> groups;
  Activations view;
};

std::vector<float> run(const KernelTable& table, const PackedMatrix& w, const Activations& x,
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

constexpr WeightFormat kFormats[] = {WeightFormat::f32, WeightFormat::f16, WeightFormat::q4_1,
                                     WeightFormat::q8_0};
constexpr const char* kFormatNames[] = {"f32", "f16", "q4_1", "q8_0"};

}  // namespace

TEST_CASE("given any shape and codes, when multiplied, then every table equals scalar bit for bit") {
  const auto tables = vector_tables();
  int cases = 0;
  for (const WeightFormat format : kFormats) {
    const auto* name = kFormatNames[static_cast<size_t>(format)];
    for (const Codes kind : {Codes::random, Codes::extreme}) {
      for (const int64_t columns : {32, 64, 96, 288, 1024, 1056, 2112}) {
        for (const int64_t rows : {1, 15, 16, 17, 33, 50}) {
          if (columns > 1000 && rows > 17) continue;
          const auto source =
              file_matrix(format, rows, columns, static_cast<unsigned>(rows * columns), kind);
          const Packed w = pack(format, source, rows, columns);
          for (const int64_t m : {1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 24, 25, 40}) {
            if (columns > 1000 && m > 13 && m != 40) continue;
            const Inputs x(m, columns, static_cast<unsigned>(m + 1), kind);
            const int64_t panels = (rows + 15) / 16;
            const int64_t first = m % 2 == 0 ? panels / 2 : 0;
            const bool add = m % 3 == 0;
            const auto expected = run(scalar_kernels(), w.matrix, x.view, first, panels, add);
            for (const auto* table : tables) {
              const auto actual = run(*table, w.matrix, x.view, first, panels, add);
              check_same(expected, actual, table->name,
                         std::string(name) + " rows " + std::to_string(rows) + " columns " +
                             std::to_string(columns) + " batch " + std::to_string(m));
              cases++;
            }
          }
        }
      }
    }
  }
  MESSAGE("compared " << cases << " products on " << tables.size() << " tables");
  CHECK((tables.empty() || cases > 1000));
}

TEST_CASE("given a batch larger than a block of rows, when multiplied, then all rows are right") {
  for (const WeightFormat format : {WeightFormat::q4_1, WeightFormat::q8_0}) {
    const auto source = file_matrix(format, 20, 1152, 5, Codes::random);
    const Packed w = pack(format, source, 20, 1152);
    const Inputs x(300, 1152, 9, Codes::random);
    const auto expected = run(scalar_kernels(), w.matrix, x.view, 0, 2, true);
    for (const auto* table : vector_tables())
      check_same(expected, run(*table, w.matrix, x.view, 0, 2, true), table->name, "300 rows");
  }
}

TEST_CASE("given odd column counts, when dense weights are multiplied, then tables equal scalar") {
  for (const WeightFormat format : {WeightFormat::f32, WeightFormat::f16}) {
    for (const int64_t columns : {1, 3, 31, 59, 255, 256, 257, 600}) {
      const auto source = file_matrix(format, 19, columns, 3, Codes::random);
      const Packed w = pack(format, source, 19, columns);
      for (const int64_t m : {1, 2, 5, 9, 17}) {
        const Inputs x(m, columns, 4, Codes::random);
        const auto expected = run(scalar_kernels(), w.matrix, x.view, 0, 2, false);
        for (const auto* table : vector_tables())
          check_same(expected, run(*table, w.matrix, x.view, 0, 2, false), table->name, "dense");
      }
    }
  }
}

TEST_CASE("given scalar products, when compared with doubles, then they are within the bound") {
  for (const WeightFormat format : kFormats) {
    const int64_t rows = 21, columns = 512, m = 3;
    const auto source = file_matrix(format, rows, columns, 11, Codes::random);
    const Packed w = pack(format, source, rows, columns);
    const Inputs x(m, columns, 12, Codes::random);
    const auto y = run(scalar_kernels(), w.matrix, x.view, 0, 2, false);
    std::vector<float> row(static_cast<size_t>(columns));
    for (int64_t n = 0; n < rows; ++n) {
      unpack_row(w.matrix, n, row.data());
      for (int64_t i = 0; i < m; ++i) {
        double sum = 0, magnitude = 0;
        for (int64_t k = 0; k < columns; ++k) {
          double activation = x.view.values[i * x.view.values_stride + k];
          if (format == WeightFormat::q4_1 || format == WeightFormat::q8_0) {
            activation = static_cast<double>(x.view.groups[i * x.view.groups_stride + k / 32].scale) *
                         x.view.codes[i * x.view.codes_stride + k];
          }
          const double term = activation * static_cast<double>(row[static_cast<size_t>(k)]);
          sum += term;
          magnitude += std::abs(term);
        }
        // Every term is rounded a handful of times and passes at most 256 + 2 sums.
        const double bound = magnitude * 6e-8 * 260;
        CHECK(std::abs(y[static_cast<size_t>(i * (rows + 5) + n)] - sum) <= bound);
      }
    }
  }
}

TEST_CASE("given a scale that is NaN or infinite, when packed, then it is refused") {
  for (const uint16_t bad : {0x7C00, 0xFC00, 0x7E00, 0x7C01}) {
    for (const WeightFormat format : {WeightFormat::f16, WeightFormat::q4_1, WeightFormat::q8_0}) {
      const auto f = static_cast<size_t>(format);
      auto source = file_matrix(format, 16, 64, 1, Codes::random);
      const size_t row_bytes = 64 / static_cast<size_t>(kBlockColumns[f]) * kBlockBytes[f];
      std::memcpy(source.data() + 7 * row_bytes + kBlockBytes[f], &bad, 2);
      std::vector<std::byte> panel(packed_panel_bytes(format, 64));
      CHECK_FALSE(pack_panel(format, source.data(), row_bytes, 16, 64, 0, panel.data()));
    }
  }
  auto source = file_matrix(WeightFormat::q4_1, 1, 32, 1, Codes::random);
  const uint16_t infinite = 0x7C00;
  std::memcpy(source.data() + 2, &infinite, 2);  // the minimum
  std::vector<std::byte> panel(packed_panel_bytes(WeightFormat::q4_1, 32));
  CHECK_FALSE(pack_panel(WeightFormat::q4_1, source.data(), 20, 1, 32, 0, panel.data()));
}

TEST_CASE("given packed weights, when their size is counted, then it is the file's within 6%") {
  for (const WeightFormat format : kFormats) {
    const auto f = static_cast<size_t>(format);
    for (const int64_t columns : {576, 1536, 4096}) {
      const double file = static_cast<double>(columns / kBlockColumns[f]) *
                          static_cast<double>(kBlockBytes[f]) * 16;
      CHECK(static_cast<double>(packed_panel_bytes(format, columns)) <= file * 1.06);
      CHECK(packed_panel_bytes(format, columns) % 64 == 0);
    }
  }
}

TEST_CASE("given packed rows, when unpacked, then they are the blocks' formulas") {
  const int64_t rows = 18, columns = 96;
  for (const WeightFormat format : {WeightFormat::q4_1, WeightFormat::q8_0}) {
    const auto source = file_matrix(format, rows, columns, 2, Codes::random);
    const Packed w = pack(format, source, rows, columns);
    const size_t block_bytes = kBlockBytes[static_cast<size_t>(format)];
    std::vector<float> row(static_cast<size_t>(columns));
    for (int64_t n = 0; n < rows; ++n) {
      unpack_row(w.matrix, n, row.data());
      for (int64_t k = 0; k < columns; ++k) {
        const std::byte* block =
            source.data() + static_cast<size_t>(n * (columns / 32) + k / 32) * block_bytes;
        uint16_t d, m;
        std::memcpy(&d, block, 2);
        std::memcpy(&m, block + 2, 2);
        const auto i = static_cast<size_t>(k % 32);
        float expected;
        if (format == WeightFormat::q8_0) {
          expected = scalar::half_to_float(d) * static_cast<float>(static_cast<int8_t>(block[2 + i]));
        } else {
          const auto both = static_cast<uint8_t>(block[4 + i % 16]);
          const int code = i < 16 ? both & 15 : both >> 4;
          expected = scalar::half_to_float(d) * static_cast<float>(code) + scalar::half_to_float(m);
        }
        CHECK(row[static_cast<size_t>(k)] == expected);
      }
    }
  }
}
