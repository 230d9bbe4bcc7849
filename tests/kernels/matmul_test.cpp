// Products of every table against scalar, bit for bit, and scalar against double precision.
#include "tests/kernels/matrices.h"

using namespace kvasir::kernels;        // NOLINT
using namespace kvasir::kernels::test;  // NOLINT

TEST_CASE(
    "given any shape and codes, when multiplied, then every table equals scalar bit for bit") {
  const auto tables = vector_tables();
  int cases = 0;
  for (const WeightFormat format : all_formats()) {
    const auto* name = format_name(format);
    const bool wide = input_form(format) == InputForm::wide_groups;
    std::vector<int64_t> widths = wide ? std::vector<int64_t>{256, 768, 1024, 1280, 2304}
                                       : std::vector<int64_t>{32, 64, 96, 288, 1024, 1056, 2112};
    if (is_emulated_cpu()) widths = {wide ? 256 : 96, wide ? 1280 : 1056};
    for (const Codes kind : {Codes::random, Codes::extreme}) {
      for (const int64_t columns : widths) {
        for (const int64_t rows : {1, 15, 16, 17, 33, 50}) {
          if ((columns > 500 || is_emulated_cpu()) && rows != 17) continue;
          const auto source =
              file_matrix(format, rows, columns, static_cast<unsigned>(rows * columns), kind);
          const Packed w = pack(format, source, rows, columns);
          for (const int64_t m : {1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 24, 25, 40, 65, 79}) {
            if (columns > 500 && m > 13 && m != 79) continue;
            const Inputs x(m, columns, static_cast<unsigned>(m + 1), kind);
            const int64_t panels = (rows + 15) / 16;
            const int64_t first = m % 2 == 0 ? panels / 2 : 0;
            const bool add = m % 3 == 0;
            const auto expected = run(scalar_kernels(), w.matrix, x.view, first, panels, add);
            for (const auto* table : tables) {
              const auto actual = run(*table, w.matrix, x.view, first, panels, add);
              check_same(expected, actual, table->name,
                         std::string(name) + " rows " + std::to_string(rows) + " columns " +
                             std::to_string(columns) + " batch " + std::to_string(m) + " seeds " +
                             std::to_string(rows * columns) + ", " + std::to_string(m + 1));
              cases++;
            }
          }
        }
      }
    }
  }
  MESSAGE("compared " << cases << " products on " << names_of(tables));
  CHECK((tables.empty() || cases > 1000));
}

TEST_CASE("given 1 to 50 outputs and 1 to 40 rows, when multiplied, then no tail differs") {
  const auto tables = vector_tables();
  int cases = 0;
  const std::vector<WeightFormat> formats = {WeightFormat::q4_1, WeightFormat::q8_0,
                                             WeightFormat::q4_k, WeightFormat::iq2_xs};
  for (const WeightFormat format : formats) {
    const int64_t columns = std::max<int64_t>(64, format_columns(format));
    for (int64_t rows = 1; rows <= 50; ++rows) {
      const auto source =
          file_matrix(format, rows, columns, static_cast<unsigned>(rows), Codes::random);
      const Packed w = pack(format, source, rows, columns);
      const int64_t panels = (rows + 15) / 16;
      for (int64_t m = 1; m <= 40; ++m) {
        const Inputs x(m, columns, static_cast<unsigned>(m), Codes::random);
        // Panels [first, end) of 1 to 4, the empty range among them.
        const int64_t first = (m + rows) % (panels + 1);
        const int64_t end = first + (m * rows) % (panels + 1 - first);
        const bool add = (m + rows) % 2 == 0;
        const auto expected = run(scalar_kernels(), w.matrix, x.view, first, end, add);
        for (const auto* table : tables) {
          check_same(expected, run(*table, w.matrix, x.view, first, end, add), table->name,
                     std::string(format_name(format)) + " rows and seed " + std::to_string(rows) +
                         " batch and seed " + std::to_string(m) + " panels " +
                         std::to_string(first) + " to " + std::to_string(end));
          cases++;
        }
      }
    }
  }
  MESSAGE("compared " << cases << " products on " << names_of(tables));
  CHECK(cases == 2000 * static_cast<int>(formats.size() * tables.size()));
}

TEST_CASE("given any panels of a matrix, when multiplied, then all others are left alone") {
  for (const WeightFormat format : all_formats()) {
    const int64_t columns = std::max<int64_t>(96, format_columns(format));
    const auto source = file_matrix(format, 50, columns, 8, Codes::random);
    const Packed w = pack(format, source, 50, columns);
    const Inputs x(5, columns, 3, Codes::random);
    std::vector<const KernelTable*> tables = vector_tables();
    tables.push_back(&scalar_kernels());
    for (const auto* table : tables) {
      const auto untouched = run(*table, w.matrix, x.view, 0, 0, false);
      const auto all = run(*table, w.matrix, x.view, 0, 4, false);
      for (int64_t first = 0; first < 4; ++first) {
        for (int64_t end = first; end <= 4; ++end) {
          const auto some = run(*table, w.matrix, x.view, first, end, false);
          for (size_t i = 0; i < some.size(); ++i) {
            const auto n = static_cast<int64_t>(i % 55);  // rows of output are 50 + 5 apart
            const bool asked = n < 50 && n / 16 >= first && n / 16 < end;
            REQUIRE(same(some[i], asked ? all[i] : untouched[i]));
          }
        }
      }
    }
  }
}

TEST_CASE("given NaN among the activations, when multiplied, then only its row is NaN") {
  for (const WeightFormat format : quantized_formats()) {
    const int64_t columns = std::max<int64_t>(160, format_columns(format));
    const auto source = file_matrix(format, 37, columns, 8, Codes::random);
    const Packed w = pack(format, source, 37, columns);
    for (const int64_t m : {3, 14, 70}) {
      Inputs x(m, columns, 3, Codes::random);
      std::vector<const KernelTable*> tables = vector_tables();
      tables.push_back(&scalar_kernels());
      const auto clean = run(scalar_kernels(), w.matrix, x.view, 0, 3, false);
      x.values[static_cast<size_t>(2 * x.view.values_stride + 100)] = std::nanf("");
      x.quantize(2);
      for (const auto* table : tables) {
        const auto y = run(*table, w.matrix, x.view, 0, 3, false);
        for (size_t i = 0; i < y.size(); ++i) {
          if (i % 42 >= 37) continue;
          REQUIRE((i / 42 == 2 ? std::isnan(y[i]) : same(y[i], clean[i])));
        }
      }
    }
  }
}

TEST_CASE("given a batch larger than a block of rows, when multiplied, then all rows are right") {
  for (const WeightFormat format : quantized_formats()) {
    const int64_t whole = format_columns(format) == 256 ? 1280 : 1152;
    const auto source = file_matrix(format, 20, whole, 5, Codes::random);
    const Packed w = pack(format, source, 20, whole);
    const Inputs x(300, whole, 9, Codes::random);
    const auto expected = run(scalar_kernels(), w.matrix, x.view, 0, 2, true);
    for (const auto* table : vector_tables())
      check_same(expected, run(*table, w.matrix, x.view, 0, 2, true), table->name, "300 rows");
  }
}

TEST_CASE("given odd column counts, when dense weights are multiplied, then tables equal scalar") {
  for (const WeightFormat format : dense_formats()) {
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
  for (const WeightFormat format : all_formats()) {
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
          const double term =
              x.read(format, i, k) * static_cast<double>(row[static_cast<size_t>(k)]);
          sum += term;
          magnitude += std::abs(term);
        }
        // Every term is rounded a handful of times and passes at most 256 + 2 sums; a minimum is
        // added apart from its weight, which may be much smaller than both.
        const double bound = magnitude * 6e-8 * 260 * (format == WeightFormat::q2_k ? 4 : 1);
        INFO(format_name(format));
        CHECK(std::abs(static_cast<double>(y[static_cast<size_t>(i * (rows + 5) + n)]) - sum) <=
              bound);
      }
    }
  }
}
