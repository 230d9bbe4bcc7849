// Attention of one KV head over one partial of 1,024 keys: decode (few rows, memory) and prefill
// (many rows, arithmetic). A multiply-add counts as 2.
#include "benchmarks/kernels/tables.h"

namespace kvasir::kernels::bench {
namespace {

struct Shape {
  KvType type;
  int64_t head_dim;
  int64_t n_rows;
  int64_t n_heads;  ///< KV heads visited in turn: their size decides which cache is measured
};

void run_attention(benchmark::State& state, const KernelTable* table, Shape shape) {
  const int64_t n_blocks = kAttentionPartial / kKvBlockPositions;
  const int64_t element = shape.type == KvType::f32 ? 4 : 2;
  const int64_t padded = (shape.head_dim + kLanes - 1) / kLanes * kLanes;
  const int64_t key_bytes = shape.head_dim * kKvBlockPositions * element;
  const int64_t block_bytes = key_bytes + padded * kKvBlockPositions * element;
  Memory kv(static_cast<size_t>(shape.n_heads * n_blocks * block_bytes));
  const auto x = random_floats(static_cast<size_t>(shape.head_dim * kKvBlockPositions));
  std::vector<KvBlock> blocks;
  for (int64_t i = 0; i < shape.n_heads * n_blocks; ++i) {
    std::byte* at = kv.data() + i * block_bytes;
    for (int64_t slot = 0; slot < kKvBlockPositions; ++slot) {
      const float* vector = x.data() + slot * shape.head_dim;
      table->store_key[static_cast<int>(shape.type)](vector, shape.head_dim, slot, at);
      table->store_value[static_cast<int>(shape.type)](vector, shape.head_dim, slot, at + key_bytes);
    }
    blocks.push_back({at, i % n_blocks * kKvBlockPositions});
  }
  const std::vector<const float*> queries(static_cast<size_t>(shape.n_rows), x.data());
  const std::vector<int64_t> first(static_cast<size_t>(shape.n_rows), 0);
  const std::vector<int64_t> end(static_cast<size_t>(shape.n_rows), kAttentionPartial);
  Memory scratch(kAttentionScratchBytes);
  Memory states(static_cast<size_t>(shape.n_rows * (kStateOutput + padded)) * sizeof(float));
  int64_t head = 0;
  for (auto _ : state) {
    table->attention({shape.type, shape.type, shape.head_dim, blocks.data() + head * n_blocks,
                      n_blocks, 0, static_cast<size_t>(key_bytes), shape.n_rows, queries.data(),
                      first.data(), end.data(), 0.125F, 0, states.floats(), scratch.data()});
    benchmark::ClobberMemory();
    head = (head + 1) % shape.n_heads;
  }
  const auto keys = static_cast<double>(kAttentionPartial);
  report(state, 4 * keys * static_cast<double>(shape.n_rows * shape.head_dim),
         static_cast<double>(n_blocks * block_bytes));
}

}  // namespace

void register_attention() {
  for (const KernelTable* table : vector_tables()) {
    for (const KvType type : {KvType::f32, KvType::f16}) {
      for (const int64_t head_dim : {64, 128}) {
        for (const int64_t n_rows : {1, 3, 4, 7, 8, 32, 96}) {
          // Few rows: 128 heads (32 MB at f16, 64) come from memory; many rows: the caches.
          const int64_t n_heads = n_rows < 8 ? 128 : 4;
          const std::string name = std::string("attention/") + table->name +
                                   (type == KvType::f32 ? "/f32" : "/f16") + "/dim:" +
                                   std::to_string(head_dim) + "/rows:" + std::to_string(n_rows);
          const Shape shape{type, head_dim, n_rows, n_heads};
          benchmark::RegisterBenchmark(name.c_str(), run_attention, table, shape);
        }
      }
    }
  }
}

}  // namespace kvasir::kernels::bench
