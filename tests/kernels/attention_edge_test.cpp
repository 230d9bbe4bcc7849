// Attention where it is easily wrong: values that are not finite, slots that must not matter, other
// positions and types, the borders between ways of working.
#include "tests/kernels/attention_cases.h"

using namespace kvasir::kernels;        // NOLINT
using namespace kvasir::kernels::test;  // NOLINT

namespace {

std::vector<const KernelTable*> all_tables() {
  std::vector<const KernelTable*> tables = vector_tables();
  tables.insert(tables.begin(), &scalar_kernels());
  return tables;
}

Rows rows_seeing(int64_t n_rows, int64_t dim, int64_t first, int64_t end, unsigned seed) {
  Rows rows;
  rows.query = random_floats(static_cast<size_t>(n_rows * dim), seed, 2.0F);
  for (int64_t r = 0; r < n_rows; ++r) rows.queries.push_back(rows.query.data() + r * dim);
  rows.first.assign(static_cast<size_t>(n_rows), first);
  rows.end.assign(static_cast<size_t>(n_rows), end);
  return rows;
}

std::vector<float> row_of(const std::vector<float>& all, size_t row, size_t n_rows) {
  const size_t floats = all.size() / n_rows;
  return {all.begin() + static_cast<long>(row * floats),
          all.begin() + static_cast<long>((row + 1) * floats)};
}

/// `keys` and `values` of n positions, random.
struct Contents {
  Contents(int64_t n_positions, int64_t dim, unsigned seed)
      : keys(random_floats(static_cast<size_t>(n_positions * dim), seed, 2.0F)),
        values(random_floats(static_cast<size_t>(n_positions * dim), seed + 1)) {}
  std::vector<float> keys, values;
};

}  // namespace

TEST_CASE("given keys and values of two types, when attended, then tables equal scalar") {
  for (const KvType key_type : {KvType::f32, KvType::f16}) {
    const KvType value_type = key_type == KvType::f32 ? KvType::f16 : KvType::f32;
    for (const int64_t dim : {24, 64, 100}) {
      const Contents kv(70, dim, 1);
      const Store store(scalar_kernels(), {key_type, value_type, dim, 70}, kv.keys, kv.values);
      for (const int64_t n_rows : {1, 6, 40}) {
        const Rows rows = make_rows(n_rows, dim, 70, 8);
        const auto expected = attend(scalar_kernels(), store, rows, 0);
        for (const auto* table : vector_tables())
          check_same(expected, attend(*table, store, rows, 0), table->name, "mixed types");
      }
    }
  }
}

TEST_CASE("given every number of rows from 1 to 40, when attended, then each equals itself alone") {
  // Crosses every border between few and many rows, and every rest of a register tile.
  const int64_t dim = 40, n_positions = 90;
  const Contents kv(n_positions, dim, 3);
  const Store store(scalar_kernels(), KvType::f16, dim, n_positions, kv.keys, kv.values);
  const Rows all = make_rows(40, dim, n_positions, 11);
  std::vector<std::vector<float>> alone;
  for (size_t r = 0; r < 40; ++r) {
    const Rows one{{}, {all.queries[r]}, {all.first[r]}, {all.end[r]}};
    alone.push_back(attend(scalar_kernels(), store, one, 0));
  }
  for (const auto* table : all_tables()) {
    for (size_t n_rows = 1; n_rows <= 40; ++n_rows) {
      Rows rows{{},
                {all.queries.begin(), all.queries.begin() + static_cast<long>(n_rows)},
                {all.first.begin(), all.first.begin() + static_cast<long>(n_rows)},
                {all.end.begin(), all.end.begin() + static_cast<long>(n_rows)}};
      const auto states = attend(*table, store, rows, 0);
      for (size_t r = 0; r < n_rows; ++r)
        check_same(alone[r], row_of(states, r, n_rows), table->name,
                   "row " + std::to_string(r) + " of " + std::to_string(n_rows));
    }
  }
}

TEST_CASE(
    "given a partial far from position 0, when windows end anywhere, then tables equal scalar") {
  const int64_t dim = 20, n_positions = 128, base = 7 * kAttentionPartial;
  const Contents kv(n_positions, dim, 5);
  const Store store(scalar_kernels(), {KvType::f16, KvType::f16, dim, n_positions, base}, kv.keys,
                    kv.values);
  const Store at_zero(scalar_kernels(), KvType::f16, dim, n_positions, kv.keys, kv.values);
  for (int64_t first = 0; first < 70; first += 3) {
    Rows rows = rows_seeing(9, dim, 0, 0, 7);
    for (size_t r = 0; r < 9;
         ++r) {  // windows of 1 to 57 keys; the last sees nothing of this partial
      rows.first[r] = first + static_cast<int64_t>(r);
      rows.end[r] = rows.first[r] + 1 + 7 * static_cast<int64_t>(r);
    }
    rows.first[8] = 5000;
    rows.end[8] = 6000;
    const auto expected = attend(scalar_kernels(), at_zero, rows, 3.0F);
    for (auto& f : rows.first) f += base;
    for (auto& e : rows.end) e += base;
    for (const auto* table : all_tables()) {
      const auto states = attend(*table, store, rows, 3.0F);
      check_same(expected, states, table->name, "window from " + std::to_string(first));
      const auto nothing = row_of(states, 8, 9);
      CHECK(nothing[kStateMax] == -INFINITY);
      for (size_t i = kStateSum; i < nothing.size(); ++i) CHECK(nothing[i] == 0.0F);
    }
  }
}

TEST_CASE("given NaN in slots nobody sees, when attended, then nothing changes") {
  const int64_t dim = 33, n_positions = 96;
  Contents kv(n_positions, dim, 9);
  const Rows rows = [&] {
    Rows r = rows_seeing(12, dim, 17, 70, 13);
    r.end[3] = 60;  // others with a range of their own
    r.first[5] = 40;
    return r;
  }();
  for (const KvType type : {KvType::f32, KvType::f16}) {
    const Store clean(scalar_kernels(), type, dim, n_positions, kv.keys, kv.values);
    Contents poisoned = kv;
    for (int64_t p = 0; p < n_positions; ++p) {
      if (p >= 17 && p < 70) continue;
      for (int64_t d = 0; d < dim; ++d) {
        const auto i = static_cast<size_t>(p * dim + d);
        poisoned.keys[i] = p % 2 == 0 ? std::nanf("") : INFINITY;
        poisoned.values[i] = p % 3 == 0 ? -INFINITY : std::nanf("");
      }
    }
    const Store dirty(scalar_kernels(), type, dim, n_positions, poisoned.keys, poisoned.values);
    for (const float cap : {0.0F, 4.0F}) {
      const auto expected = attend(scalar_kernels(), clean, rows, cap);
      for (const float x : expected) REQUIRE(!std::isnan(x));
      for (const auto* table : all_tables())
        check_same(expected, attend(*table, dirty, rows, cap), table->name, "poisoned slots");
    }
  }
}

namespace {

/// Rows 1, 3, 5, ... see position `bad`, whose key or value holds one `x`; the others end before
/// it.
void check_one_bad_element(float x, bool in_key, int64_t bad, int64_t n_rows) {
  const int64_t dim = 16, n_positions = 64;
  const auto n = static_cast<size_t>(n_rows);
  Contents kv(n_positions, dim, 21);
  const Store clean(scalar_kernels(), KvType::f32, dim, n_positions, kv.keys, kv.values);
  (in_key ? kv.keys : kv.values)[static_cast<size_t>(bad * dim + 5)] = x;
  const Store store(scalar_kernels(), KvType::f32, dim, n_positions, kv.keys, kv.values);
  Rows rows = rows_seeing(n_rows, dim, 0, bad, 3);
  for (size_t r = 1; r < n; r += 2) rows.end[r] = 62;
  const auto expected = attend(scalar_kernels(), store, rows, 0);
  for (const auto* table : all_tables()) {
    const auto states = attend(*table, store, rows, 0);
    check_same(expected, states, table->name, "not finite at " + std::to_string(bad));
    const auto output = finish(*table, states, dim);
    const auto without = finish(*table, attend(*table, clean, rows, 0), dim);
    for (size_t r = 0; r < n; ++r) {
      const auto row = row_of(output, r, n);
      if (r % 2 == 0) {
        check_same(row_of(without, r, n), row, table->name, "a row that does not see it");
      } else if (!in_key) {
        CHECK_FALSE(std::isfinite(row[5]));
        CHECK(std::isfinite(row[6]));
      } else if (std::isnan(x)) {
        for (const float y : row) CHECK(std::isnan(y));
      }
    }
  }
}

}  // namespace

TEST_CASE("given a key or value that is not finite, when attended, then only who sees it is not") {
  // NaN with low payload bits too: those once became an exponent, and the NaN a finite weight.
  for (const float x :
       {std::nanf(""), from_bits(0xFFFFFFFFU), from_bits(0x7FC00155U), INFINITY, -INFINITY}) {
    for (const int64_t bad : {5, 21, 37, 52}) {  // both halves of two blocks
      for (const int64_t n_rows : {4, 36}) {
        check_one_bad_element(x, true, bad, n_rows);
        check_one_bad_element(x, false, bad, n_rows);
      }
    }
  }
}

TEST_CASE("given one score of minus infinity, when attended, then that key weighs nothing") {
  // 3e38 * 3e38 overflows: the formulas give s = -inf there, and weight exp(-inf) = 0.
  const int64_t dim = 8, n_positions = 40;
  Contents kv(n_positions, dim, 2);
  kv.keys[11 * dim] = -3e38F;
  Rows rows = rows_seeing(10, dim, 0, n_positions, 4);
  for (int64_t r = 0; r < 10; ++r) rows.query[static_cast<size_t>(r * dim)] = 3e38F;
  for (int64_t p = 0; p < n_positions; ++p)
    if (p != 11) kv.keys[static_cast<size_t>(p * dim)] = 0;
  const Store store(scalar_kernels(), KvType::f32, dim, n_positions, kv.keys, kv.values);
  for (const auto* table : all_tables()) {
    const auto output = finish(*table, attend(*table, store, rows, 0), dim);
    for (const float x : output) CHECK(std::abs(x) <= 1.0F);  // a mean of values in [-1, 1]
    check_same(finish(scalar_kernels(), attend(scalar_kernels(), store, rows, 0), dim), output,
               table->name, "minus infinity");
  }
}

TEST_CASE("given one visible key, when attended, then the output is its value exactly") {
  for (const int64_t dim : {1, 15, 16, 17, 1024}) {
    const Contents kv(64, dim, 31);
    const Store store(scalar_kernels(), KvType::f16, dim, 64, kv.keys, kv.values);
    for (const int64_t at : {0, 31, 32, 63}) {
      for (const int64_t n_rows : {1, 34}) {
        const Rows rows = rows_seeing(n_rows, dim, at, at + 1, 6);
        for (const auto* table : all_tables()) {
          const auto output = finish(*table, attend(*table, store, rows, 0), dim);
          for (int64_t i = 0; i < n_rows * dim; ++i)
            REQUIRE(output[static_cast<size_t>(i)] == store.value(at, i % dim));
        }
      }
    }
  }
}

TEST_CASE(
    "given partials where a row saw nothing or NaN, when merged, then it is as the rule says") {
  const int64_t dim = 10;
  const auto floats = static_cast<size_t>(kStateOutput + padded(dim));
  std::vector<float> empty(floats, 0.0F), some(floats, 0.5F), nans(floats, std::nanf(""));
  empty[kStateMax] = -INFINITY;
  nans[kStateMax] = -INFINITY;  // every score was NaN: no maximum, but sums that say so
  some[kStateMax] = 2.0F;
  for (const auto* table : all_tables()) {
    const auto merged = [&](std::vector<float> running, const std::vector<float>& next) {
      table->attention_merge(running.data(), next.data(), dim);
      running.erase(running.begin() + 1, running.begin() + kStateSum);  // unused
      return running;
    };
    const auto used = [](std::vector<float> state) {
      state.erase(state.begin() + 1, state.begin() + kStateSum);
      return state;
    };
    check_same(used(some), merged(some, empty), table->name, "a next that saw nothing");
    check_same(used(empty), merged(empty, empty), table->name, "both saw nothing");
    check_same(used(some), merged(empty, some), table->name, "a running that saw nothing");
    for (const auto& result : {merged(some, nans), merged(nans, some), merged(empty, nans)}) {
      for (size_t i = 1; i < result.size(); ++i) CHECK(std::isnan(result[i]));
    }
    std::vector<float> output(static_cast<size_t>(dim), 7.0F);
    table->attention_finish(empty.data(), dim, output.data());
    for (const float x : output) CHECK(x == 0.0F);
  }
}
