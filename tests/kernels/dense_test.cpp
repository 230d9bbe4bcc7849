// Dense products against an own reading of kernels.h and against double precision.
#include "cpu_kernels/scalar/half.h"
#include "tests/kernels/isas.h"

using namespace kvasir::kernels;        // NOLINT
using namespace kvasir::kernels::test;  // NOLINT

namespace {

struct Product {
  WeightFormat format;
  int64_t n_inputs;   ///< rows of x
  int64_t n_outputs;  ///< rows of the weights
  int64_t n_columns;
};

/// Packed weights with their values, and activations whose rows are followed by NaN.
struct Operands {
  explicit Operands(const Product& product)
      : shape(product),
        stride(shape.n_columns + 5),
        panels(packed_panel_bytes(shape.format, shape.n_columns) *
               static_cast<size_t>((shape.n_outputs + 15) / 16)),
        x(static_cast<size_t>(shape.n_inputs * stride), 1) {
    const auto n = static_cast<size_t>(shape.n_outputs * shape.n_columns);
    weights = random_floats(n, 17, 3.0F);
    std::vector<uint16_t> halves(n);
    for (size_t i = 0; i < n && shape.format == WeightFormat::f16; ++i) {
      halves[i] = scalar::float_to_half(weights[i]);
      weights[i] = scalar::half_to_float(halves[i]);
    }
    const bool half = shape.format == WeightFormat::f16;
    const auto* source = half ? reinterpret_cast<const std::byte*>(halves.data())
                              : reinterpret_cast<const std::byte*>(weights.data());
    const size_t panel_bytes = packed_panel_bytes(shape.format, shape.n_columns);
    for (int64_t p = 0; p < (shape.n_outputs + 15) / 16; ++p) {
      REQUIRE(pack_panel(shape.format, source,
                         static_cast<size_t>(shape.n_columns) * (half ? 2 : 4), shape.n_outputs,
                         shape.n_columns, p, panels.data() + static_cast<size_t>(p) * panel_bytes));
    }
    const auto values = random_floats(static_cast<size_t>(shape.n_inputs * shape.n_columns), 18);
    for (int64_t m = 0; m < shape.n_inputs; ++m)
      for (int64_t k = 0; k < shape.n_columns; ++k)
        x[static_cast<size_t>(m * stride + k)] =
            values[static_cast<size_t>(m * shape.n_columns + k)];
  }
  float weight(int64_t n, int64_t k) const {
    return weights[static_cast<size_t>(n * shape.n_columns + k)];
  }
  Product shape;
  int64_t stride;
  Guarded<std::byte> panels;
  Guarded<float> x;
  std::vector<float> weights;
};

/// Rows of the result are followed by 3 floats that stay as they are; outputs of panels not asked
/// for too.
std::vector<float> multiply(const KernelTable& table, Operands& operands, int64_t first_panel,
                            int64_t end_panel, bool add) {
  const Product& s = operands.shape;
  const PackedMatrix matrix{s.format, s.n_outputs, s.n_columns, operands.panels.data(),
                            packed_panel_bytes(s.format, s.n_columns)};
  const Activations input{s.n_inputs, s.n_columns, operands.x.data(), operands.stride};
  const int64_t stride = s.n_outputs + 3;
  Guarded<float> y(static_cast<size_t>(s.n_inputs * stride), 1);
  for (int64_t i = 0; i < s.n_inputs * stride; ++i)
    y[static_cast<size_t>(i)] = static_cast<float>(i % 97) / 8;
  Guarded<std::byte> scratch(kMatmulScratchBytes);
  table.matmul[static_cast<int>(s.format)](
      {&matrix, &input, y.data(), stride, first_panel, end_panel, add, scratch.data()});
  REQUIRE(y.untouched_outside());
  return y.values();
}

/// The rule of kernels.h, term by term.
std::vector<float> by_the_rule(Operands& operands, int64_t first_panel, int64_t end_panel,
                               bool add) {
  const Product& s = operands.shape;
  const int64_t stride = s.n_outputs + 3;
  std::vector<float> y(static_cast<size_t>(s.n_inputs * stride));
  for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(i % 97) / 8;
  for (int64_t m = 0; m < s.n_inputs; ++m) {
    for (int64_t n = 16 * first_panel; n < std::min(16 * end_panel, s.n_outputs); ++n) {
      float total = 0;
      for (int64_t chunk = 0; chunk < s.n_columns; chunk += 256) {
        float part = 0;
        for (int64_t k = chunk; k < std::min(chunk + 256, s.n_columns); ++k)
          part = std::fma(operands.weight(n, k),
                          operands.x[static_cast<size_t>(m * operands.stride + k)], part);
        total += part;
      }
      float& out = y[static_cast<size_t>(m * stride + n)];
      out = add ? out + total : total;
    }
  }
  return y;
}

}  // namespace

TEST_CASE("given any number of rows and panels, when multiplied, then it is the rule bit for bit") {
  int count = 0;
  for (const WeightFormat format : {WeightFormat::f32, WeightFormat::f16}) {
    for (const int64_t n_columns : {1, 37, 255, 256, 257, 512, 700}) {
      for (const int64_t n_outputs : {1, 16, 50, 130}) {
        for (const int64_t n_inputs : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 17, 25, 33}) {
          if (n_inputs > 13 && n_columns > 300 && n_outputs > 50) continue;
          Operands operands({format, n_inputs, n_outputs, n_columns});
          const int64_t n_panels = (n_outputs + 15) / 16;
          const bool add = (n_inputs + n_outputs) % 2 == 0;
          const int64_t first = n_panels > 3 ? 1 : 0;  // 130 rows: panels 1 to 8 of 9, then 1 to 9
          const int64_t end = n_panels > 3 && n_inputs % 2 == 0 ? n_panels - 1 : n_panels;
          const auto expected = by_the_rule(operands, first, end, add);
          std::vector<const KernelTable*> tables = vector_tables();
          tables.push_back(&scalar_kernels());
          for (const auto* table : tables) {
            check_same(expected, multiply(*table, operands, first, end, add), table->name,
                       "dense columns " + std::to_string(n_columns) + " outputs " +
                           std::to_string(n_outputs) + " rows " + std::to_string(n_inputs));
            ++count;
          }
        }
      }
    }
  }
  MESSAGE("compared " << count << " products");
}

TEST_CASE("given more rows than totals are kept for, when multiplied, then all are right") {
  Operands operands({WeightFormat::f16, 1031, 70, 300});  // 512 + 512 + 7 rows, 2 chunks, 5 panels
  const auto expected = by_the_rule(operands, 0, 5, true);
  for (const auto* table : vector_tables())
    check_same(expected, multiply(*table, operands, 0, 5, true), table->name, "1,031 rows");
}

TEST_CASE("given dense weights, when multiplied, then the error is within the bound of its sums") {
  Operands operands({WeightFormat::f32, 3, 48, 1000});
  const auto y = multiply(scalar_kernels(), operands, 0, 3, false);
  double worst = 0;
  for (int64_t m = 0; m < 3; ++m) {
    for (int64_t n = 0; n < 48; ++n) {
      double exact = 0, magnitudes = 0;
      for (int64_t k = 0; k < 1000; ++k) {
        const double term = static_cast<double>(operands.weight(n, k)) *
                            operands.x[static_cast<size_t>(m * operands.stride + k)];
        exact += term;
        magnitudes += std::abs(term);
      }
      // A term is rounded at most 256 times in its chunk and 4 times when chunks are added.
      const double bound = 260 * std::ldexp(1.0, -24) * 1.001 * magnitudes;
      const double error = std::abs(y[static_cast<size_t>(m * 51 + n)] - exact);
      worst = std::max(worst, error / bound);
      CHECK(error <= bound);
    }
  }
  MESSAGE("worst error is " << worst << " of the bound");
}

TEST_CASE("given NaN in one row of activations, when multiplied, then only that row is NaN") {
  for (const WeightFormat format : {WeightFormat::f32, WeightFormat::f16}) {
    Operands operands({format, 9, 40, 300});
    const auto clean = multiply(scalar_kernels(), operands, 0, 3, false);
    operands.x[static_cast<size_t>(4 * operands.stride + 299)] = std::nanf("");
    for (const auto* table : vector_tables()) {
      const auto y = multiply(*table, operands, 0, 3, false);
      for (int64_t m = 0; m < 9; ++m) {
        for (int64_t n = 0; n < 40; ++n) {
          const auto i = static_cast<size_t>(m * 43 + n);
          REQUIRE((m == 4 ? std::isnan(y[i]) : y[i] == clean[i]));
        }
      }
    }
  }
}
