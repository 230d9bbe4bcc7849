// Stores and rows that the attention tests share.
#pragma once

#include "cpu_kernels/scalar/half.h"
#include "tests/kernels/isas.h"

namespace kvasir::kernels::test {

inline int64_t padded(int64_t dim) {
  return (dim + 15) / 16 * 16;
}

/// What a store holds: types, shape, and the absolute position of its first key.
struct StoreShape {
  KvType key_type;
  KvType value_type;
  int64_t dim;
  int64_t n_positions;
  int64_t first_position = 0;
};

inline size_t element_bytes(KvType type) {
  return type == KvType::f32 ? 4 : 2;
}

/// KV blocks of one head, filled through a table's store kernels; slots never written hold NaN.
/// Positions count from 0 here; the blocks say shape.first_position + 0, 1, ...
struct Store {
  Store(const KernelTable& table, const StoreShape& store_shape, const std::vector<float>& keys,
        const std::vector<float>& values)
      : shape(store_shape), dim(shape.dim) {
    value_offset = (static_cast<size_t>(dim * 32) * element_bytes(shape.key_type) + 63) / 64 * 64;
    const size_t bytes =
        value_offset + static_cast<size_t>(padded(dim) * 32) * element_bytes(shape.value_type);
    for (int64_t first = 0; first < shape.n_positions; first += 32) memory.emplace_back(bytes);
    for (int64_t p = 0; p < shape.n_positions; ++p) {
      std::byte* block = memory[static_cast<size_t>(p / 32)].data();
      const auto key_type = static_cast<size_t>(shape.key_type);
      const auto value_type = static_cast<size_t>(shape.value_type);
      table.store_key[key_type](keys.data() + p * dim, dim, p % 32, block);
      table.store_value[value_type](values.data() + p * dim, dim, p % 32, block + value_offset);
    }
    for (auto& m : memory) {
      REQUIRE(m.untouched_outside());
      blocks.push_back({m.data(), shape.first_position + static_cast<int64_t>(blocks.size()) * 32});
    }
  }
  Store(const KernelTable& table, KvType type, int64_t head_dim, int64_t n_positions,
        const std::vector<float>& keys, const std::vector<float>& values)
      : Store(table, StoreShape{type, type, head_dim, n_positions}, keys, values) {}

  double key(int64_t p, int64_t d) const {
    return element(shape.key_type, p, static_cast<size_t>(d * 32 + p % 32), 0);
  }
  float value(int64_t p, int64_t d) const {
    return element(shape.value_type, p, static_cast<size_t>(p % 32 * padded(dim) + d),
                   value_offset);
  }
  float element(KvType type, int64_t p, size_t index, size_t offset) const {
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
  StoreShape shape;
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

inline Rows make_rows(int64_t n_rows, int64_t dim, int64_t n_positions, unsigned seed) {
  Rows rows;
  rows.query = random_floats(static_cast<size_t>(n_rows * dim), seed, 2.0F);
  std::mt19937 random(seed);
  for (int64_t r = 0; r < n_rows; ++r) {
    rows.queries.push_back(rows.query.data() + r * dim);
    int64_t end = 1 + static_cast<int64_t>(random() % static_cast<unsigned>(n_positions));
    int64_t first =
        random() % 3 == 0 ? static_cast<int64_t>(random() % static_cast<unsigned>(end)) : 0;
    if (seed % 2 == 0) {  // a prefill tile: three heads a query, ascending positions
      end = std::max<int64_t>(1, n_positions - (n_rows - 1 - r) / 3);
      first = 0;
    }
    rows.first.push_back(first);
    rows.end.push_back(end);
  }
  return rows;
}

inline std::vector<float> attend(const KernelTable& table, const Store& store, const Rows& rows,
                                 float soft_cap) {
  const int64_t floats = kStateOutput + padded(store.dim);
  const auto n_rows = static_cast<int64_t>(rows.queries.size());
  Guarded<float> state(static_cast<size_t>(n_rows * floats));
  Guarded<std::byte> scratch(kAttentionScratchBytes);
  table.attention({store.shape.key_type, store.shape.value_type, store.dim, store.blocks.data(),
                   static_cast<int64_t>(store.blocks.size()), 0, store.value_offset, n_rows,
                   rows.queries.data(), rows.first.data(), rows.end.data(), 0.125F, soft_cap,
                   state.data(), scratch.data()});
  REQUIRE(state.untouched_outside());
  return state.values();
}

inline std::vector<float> finish(const KernelTable& table, const std::vector<float>& states,
                                 int64_t dim) {
  const int64_t floats = kStateOutput + padded(dim);
  const int64_t n_rows = static_cast<int64_t>(states.size()) / floats;
  Guarded<float> output(static_cast<size_t>(n_rows * dim), 1);
  for (int64_t r = 0; r < n_rows; ++r)
    table.attention_finish(states.data() + r * floats, dim, output.data() + r * dim);
  REQUIRE(output.untouched_outside());
  return output.values();
}

}  // namespace kvasir::kernels::test
