#include "tests/kernels/isas.h"

#include "cpu_kernels/scalar/half.h"

using namespace kvasir::kernels;        // NOLINT
using namespace kvasir::kernels::test;  // NOLINT

namespace {

int64_t padded(int64_t dim) { return (dim + 15) / 16 * 16; }

/// KV blocks of one head, filled through a table's store kernels; slots never written hold NaN.
struct Store {
  Store(const KernelTable& table, KvType kv_type, int64_t head_dim, int64_t n_positions,
        const std::vector<float>& keys, const std::vector<float>& values)
      : type(kv_type), dim(head_dim) {
    const size_t element = type == KvType::f32 ? 4 : 2;
    value_offset = (static_cast<size_t>(dim * 32) * element + 63) / 64 * 64;
    const size_t bytes = value_offset + static_cast<size_t>(padded(dim) * 32) * element;
    for (int64_t first = 0; first < n_positions; first += 32) memory.emplace_back(bytes);
    for (int64_t p = 0; p < n_positions; ++p) {
      std::byte* block = memory[static_cast<size_t>(p / 32)].data();
      const auto t = static_cast<size_t>(type);
      table.store_key[t](keys.data() + p * dim, dim, p % 32, block);
      table.store_value[t](values.data() + p * dim, dim, p % 32, block + value_offset);
    }
    for (auto& m : memory) {
      REQUIRE(m.untouched_outside());
      blocks.push_back({m.data(), static_cast<int64_t>(blocks.size()) * 32});
    }
  }
  float key(int64_t p, int64_t d) const { return element(p, static_cast<size_t>(d * 32 + p % 32), 0); }
  float value(int64_t p, int64_t d) const {
    return element(p, static_cast<size_t>(p % 32 * padded(dim) + d), value_offset);
  }
  float element(int64_t p, size_t index, size_t offset) const {
    const std::byte* base = blocks[static_cast<size_t>(p / 32)].data + offset;
    if (type == KvType::f32) {
      float v;
      std::memcpy(&v, base + index * 4, 4);
      return v;
    }
    uint16_t h;
    std::memcpy(&h, base + index * 2, 2);
    return scalar::half_to_float(h);
  }
  KvType type;
  int64_t dim;
  size_t value_offset;
  std::vector<Guarded<std::byte>> memory;
  std::vector<KvBlock> blocks;
};

struct Rows {
  std::vector<float> query;
  std::vector<const float*> queries;
  std::vector<int64_t> first, end;
};

Rows make_rows(int64_t n_rows, int64_t dim, int64_t n_positions, unsigned seed) {
  Rows rows;
  rows.query = random_floats(static_cast<size_t>(n_rows * dim), seed, 2.0F);
  std::mt19937 random(seed);
  for (int64_t r = 0; r < n_rows; ++r) {
    rows.queries.push_back(rows.query.data() + r * dim);
    int64_t end = 1 + static_cast<int64_t>(random() % static_cast<unsigned>(n_positions));
    int64_t first = random() % 3 == 0 ? static_cast<int64_t>(random() % static_cast<unsigned>(end)) : 0;
    if (seed % 2 == 0) {  // a prefill tile: three heads a query, ascending positions
      end = std::max<int64_t>(1, n_positions - (n_rows - 1 - r) / 3);
      first = 0;
    }
    rows.first.push_back(first);
    rows.end.push_back(end);
  }
  return rows;
}

std::vector<float> attend(const KernelTable& table, const Store& store, const Rows& rows,
                          float soft_cap) {
  const int64_t floats = kStateOutput + padded(store.dim);
  const auto n_rows = static_cast<int64_t>(rows.queries.size());
  Guarded<float> state(static_cast<size_t>(n_rows * floats));
  Guarded<std::byte> scratch(kAttentionScratchBytes);
  table.attention({store.type, store.type, store.dim, store.blocks.data(),
                   static_cast<int64_t>(store.blocks.size()), 0, store.value_offset, n_rows,
                   rows.queries.data(), rows.first.data(), rows.end.data(), 0.125F, soft_cap,
                   state.data(), scratch.data()});
  REQUIRE(state.untouched_outside());
  return state.values();
}

std::vector<float> finish(const KernelTable& table, const std::vector<float>& states, int64_t dim) {
  const int64_t floats = kStateOutput + padded(dim);
  const int64_t n_rows = static_cast<int64_t>(states.size()) / floats;
  Guarded<float> output(static_cast<size_t>(n_rows * dim), 1);
  for (int64_t r = 0; r < n_rows; ++r)
    table.attention_finish(states.data() + r * floats, dim, output.data() + r * dim);
  REQUIRE(output.untouched_outside());
  return output.values();
}

}  // namespace

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

TEST_CASE("given stored keys and values, when attended, then the output equals softmax in double") {
  for (const KvType type : {KvType::f32, KvType::f16}) {
    for (const int64_t dim : {40, 59, 64, 256}) {
      const int64_t n_positions = 75;
      const auto keys = random_floats(static_cast<size_t>(n_positions * dim), 3, 2.0F);
      const auto values = random_floats(static_cast<size_t>(n_positions * dim), 4);
      const Store store(scalar_kernels(), type, dim, n_positions, keys, values);
      const Rows rows = make_rows(7, dim, n_positions, 5);
      const auto output = finish(scalar_kernels(), attend(scalar_kernels(), store, rows, 0), dim);
      for (size_t r = 0; r < 7; ++r) {
        std::vector<double> w;
        double most = -1e300, sum = 0;
        for (int64_t p = rows.first[r]; p < rows.end[r]; ++p) {
          double s = 0;
          for (int64_t d = 0; d < dim; ++d)
            s += static_cast<double>(rows.queries[r][d]) * 0.125 * store.key(p, d);
          w.push_back(s);
          most = std::max(most, s);
        }
        for (auto& e : w) sum += e = std::exp(e - most);
        for (int64_t d = 0; d < dim; ++d) {
          double expected = 0;
          for (int64_t p = rows.first[r]; p < rows.end[r]; ++p)
            expected += w[static_cast<size_t>(p - rows.first[r])] / sum * store.value(p, d);
          // |values| <= 1; a score has |q||k| dim * 0.125 <= 128 at dim 256, rounded 256 times.
          CHECK(std::abs(output[r * static_cast<size_t>(dim) + static_cast<size_t>(d)] - expected) < 1e-4);
        }
      }
    }
  }
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
