#include "tests/kernels/attention_cases.h"

using namespace kvasir::kernels;        // NOLINT
using namespace kvasir::kernels::test;  // NOLINT

TEST_CASE("given any head size, rows, ranges, when attended, then tables equal scalar bit for bit") {
  int cases = 0;
  for (const KvType type : {KvType::f32, KvType::f16}) {
    for (const int64_t dim : {1, 8, 40, 59, 64, 80, 96, 128, 256, 300}) {
      for (const int64_t n_positions : {1, 31, 32, 33, 100}) {
        const auto keys = random_floats(static_cast<size_t>(n_positions * dim), 1, 2.0F);
        const auto values = random_floats(static_cast<size_t>(n_positions * dim), 2);
        const Store reference(scalar_kernels(), type, dim, n_positions, keys, values);
        for (const int64_t n_rows : {1, 2, 3, 4, 5, 7, 9, 13, 40}) {
          if (dim > 128 && n_rows > 9) continue;
          const Rows rows = make_rows(n_rows, dim, n_positions, static_cast<unsigned>(n_rows + dim));
          const float cap = n_rows % 4 == 0 ? 5.0F : 0.0F;
          const auto expected = attend(scalar_kernels(), reference, rows, cap);
          for (const auto* table : vector_tables()) {
            const Store store(*table, type, dim, n_positions, keys, values);
            const std::string what = "attention dim " + std::to_string(dim) + " positions " +
                                     std::to_string(n_positions) + " rows " + std::to_string(n_rows);
            const auto actual = attend(*table, store, rows, cap);
            check_same(expected, actual, table->name, what);
            check_same(finish(scalar_kernels(), expected, dim), finish(*table, actual, dim),
                       table->name, what + " output");
            cases++;
          }
        }
      }
    }
  }
  MESSAGE("compared " << cases << " attentions");
}

TEST_CASE("given more rows than a tile, when attended, then each row equals itself alone") {
  const int64_t dim = 64, n_positions = 200;
  const auto keys = random_floats(static_cast<size_t>(n_positions * dim), 1, 2.0F);
  const auto values = random_floats(static_cast<size_t>(n_positions * dim), 2);
  const Store store(scalar_kernels(), KvType::f16, dim, n_positions, keys, values);
  const Rows rows = make_rows(300, dim, n_positions, 6);
  std::vector<const KernelTable*> tables = vector_tables();
  tables.push_back(&scalar_kernels());
  for (const auto* table : tables) {
    const auto all = attend(*table, store, rows, 0);
    const size_t floats = all.size() / 300;
    for (size_t r = 0; r < 300; r += 37) {
      Rows one;
      one.queries = {rows.queries[r]};
      one.first = {rows.first[r]};
      one.end = {rows.end[r]};
      const auto alone = attend(*table, store, one, 0);
      check_same(alone, {all.begin() + static_cast<long>(r * floats),
                         all.begin() + static_cast<long>((r + 1) * floats)},
                 table->name, "row " + std::to_string(r));
    }
  }
}

namespace {

constexpr double kUnit = 5.9604644775390625e-8;  // 2^-24: one rounding

/// Attention of one row in double, and how far floats may be from it.
struct Exact {
  std::vector<double> output, bound;
};

Exact attend_in_double(const Store& store, const Rows& rows, size_t row) {
  const int64_t dim = store.dim, first = rows.first[row], n = rows.end[row] - first;
  std::vector<double> weights;
  double most = -1e300, least = 1e300, score_error = 0, sum = 0;
  for (int64_t p = first; p < rows.end[row]; ++p) {
    double s = 0, magnitudes = 0;
    for (int64_t d = 0; d < dim; ++d) {
      const double term = static_cast<double>(rows.queries[row][d]) * 0.125 * store.key(p, d);
      s += term;
      magnitudes += std::abs(term);
    }
    weights.push_back(s);
    most = std::max(most, s);
    least = std::min(least, s);
    // q * scale, then a chain of dim fused multiply-adds, then at most 4 chunks.
    score_error = std::max(score_error, static_cast<double>(dim + 5) * kUnit * magnitudes);
  }
  for (auto& w : weights) sum += w = std::exp(w - most);
  // A weight: both scores' errors, their difference rounded once, exp within 1 ULP (2 units). The
  // same again for the correction of every block, each multiplied once more.
  const double range = most - least;
  const double weight_error = std::expm1(2 * score_error + range * kUnit) + 3 * kUnit;
  const double blocks = static_cast<double>(n / 32 + 2);
  const double correction_error = blocks * (weight_error + 2 * kUnit);
  const double sum_error = static_cast<double>(n + 20) * kUnit;
  const double relative = 2 * (weight_error + correction_error + sum_error) + kUnit;
  Exact exact;
  for (int64_t d = 0; d < dim; ++d) {
    double output = 0, magnitudes = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double term = weights[static_cast<size_t>(i)] / sum * store.value(first + i, d);
      output += term;
      magnitudes += std::abs(term);
    }
    exact.output.push_back(output);
    exact.bound.push_back(relative * magnitudes);
  }
  return exact;
}

}  // namespace

TEST_CASE("given stored keys and values, when attended, then the output equals softmax in double") {
  double worst = 0;
  for (const KvType type : {KvType::f32, KvType::f16}) {
    for (const int64_t dim : {1, 40, 59, 64, 256, 700}) {
      const int64_t n_positions = 175;
      const auto keys = random_floats(static_cast<size_t>(n_positions * dim), 3, 2.0F);
      const auto values = random_floats(static_cast<size_t>(n_positions * dim), 4);
      const Store store(scalar_kernels(), type, dim, n_positions, keys, values);
      const Rows rows = make_rows(7, dim, n_positions, 5);
      const auto output = finish(scalar_kernels(), attend(scalar_kernels(), store, rows, 0), dim);
      for (size_t r = 0; r < 7; ++r) {
        const Exact exact = attend_in_double(store, rows, r);
        for (size_t d = 0; d < static_cast<size_t>(dim); ++d) {
          const double error = std::abs(output[r * static_cast<size_t>(dim) + d] - exact.output[d]);
          CHECK(error <= exact.bound[d]);
          worst = std::max(worst, error / exact.bound[d]);
        }
      }
    }
  }
  MESSAGE("worst error is " << worst << " of the bound");
}

TEST_CASE("given keys in two partials, when merged, then tables agree and it is the whole softmax") {
  const int64_t dim = 48, n_positions = 64;
  const auto keys = random_floats(static_cast<size_t>(n_positions * dim), 3, 2.0F);
  const auto values = random_floats(static_cast<size_t>(n_positions * dim), 4);
  const Store store(scalar_kernels(), KvType::f32, dim, n_positions, keys, values);
  Store first = store, second = store;
  first.blocks.pop_back();
  second.blocks.erase(second.blocks.begin());
  Rows rows = make_rows(5, dim, n_positions, 3);
  rows.end = {64, 20, 32, 33, 64};
  rows.first = {0, 0, 0, 0, 40};  // row 1 and 2 see nothing in the second, row 4 nothing in the first
  const auto whole = finish(scalar_kernels(), attend(scalar_kernels(), store, rows, 0), dim);
  std::vector<const KernelTable*> tables = vector_tables();
  tables.insert(tables.begin(), &scalar_kernels());
  std::vector<float> expected;
  for (const auto* table : tables) {
    auto running = attend(*table, first, rows, 0);
    const auto next = attend(*table, second, rows, 0);
    const size_t floats = running.size() / 5;
    for (size_t r = 0; r < 5; ++r)
      table->attention_merge(running.data() + r * floats, next.data() + r * floats, dim);
    const auto merged = finish(*table, running, dim);
    if (expected.empty()) expected = merged;
    check_same(expected, merged, table->name, "merged");
    for (size_t i = 0; i < merged.size(); ++i)
      CHECK(std::abs(merged[i] - whole[i]) < 1e-5);
  }
}

TEST_CASE("given scores of a million, when attended, then one key wins; a NaN stays in its row") {
  // Case: q . k / sqrt(128) = 300 * 300 * 128 / 11.3 = 1.02e6, past the largest half.
  const int64_t dim = 128, n = 4096;
  std::vector<float> keys(static_cast<size_t>(n * dim), 300.0F);
  for (int64_t d = 0; d < dim; ++d) keys[static_cast<size_t>(2222 * dim + d)] = 301.0F;
  const auto values = random_floats(static_cast<size_t>(n * dim), 8);
  std::vector<const KernelTable*> tables = vector_tables();
  tables.push_back(&scalar_kernels());
  for (const KvType type : {KvType::f32, KvType::f16}) {
    const Store store(scalar_kernels(), type, dim, n, keys, values);
    for (const auto* table : tables) {
      Rows rows;
      rows.query.assign(static_cast<size_t>(3 * dim), 300.0F);
      rows.query[static_cast<size_t>(dim + 5)] = std::nanf("");
      for (int64_t r = 0; r < 3; ++r) {
        rows.queries.push_back(rows.query.data() + r * dim);
        rows.first.push_back(0);
        rows.end.push_back(n);
      }
      const auto output = finish(*table, attend(*table, store, rows, 0), dim);
      for (int64_t d = 0; d < dim; ++d) {
        CHECK(output[static_cast<size_t>(d)] == store.value(2222, d));
        CHECK(std::isnan(output[static_cast<size_t>(dim + d)]));
        CHECK(output[static_cast<size_t>(2 * dim + d)] == store.value(2222, d));
      }
    }
  }
}
