#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>

#include "core/kv/block_pool.h"

using namespace kvasir;      // NOLINT
using namespace kvasir::kv;  // NOLINT

namespace {
constexpr LayerKind kKind = {.n_layers = 3, .n_kv_heads = 2, .head_dim = 40, .window = 0};
}

TEST_CASE("given 3 layers of 2 heads of 40, when laid out in f16, then parts follow the arithmetic") {
  const BlockLayout layout(kKind, KvType::f16, KvType::f32);
  // keys 40 * 32 * 2 = 2560 bytes; values 32 rows of 48 floats = 6144 bytes.
  CHECK(layout.head_bytes() == 2560 + 6144);
  CHECK(layout.block_bytes() == 6 * (2560 + 6144));
  CHECK(layout.key_offset(0, 0) == 0);
  CHECK(layout.value_offset(0, 0) == 2560);
  CHECK(layout.key_offset(2, 1) == 5 * (2560 + 6144));
}

TEST_CASE("given an odd head size, when laid out, then every part starts on a cache line") {
  for (int64_t dim = 1; dim < 70; ++dim) {
    LayerKind kind = kKind;
    kind.head_dim = dim;
    const BlockLayout layout(kind, KvType::f16, KvType::f16);
    for (int64_t head = 0; head < 2; ++head) {
      CHECK(layout.key_offset(1, head) % 64 == 0);
      CHECK(layout.value_offset(1, head) % 64 == 0);
    }
  }
}

TEST_CASE("given a budget of 2 blocks, when a third is asked for, then the error names the budget") {
  BlockPool pool(BlockLayout(kKind, KvType::f16, KvType::f16), 2);
  const auto a = pool.allocate();
  const auto b = pool.allocate();
  REQUIRE(a);
  REQUIRE(b);
  const auto c = pool.allocate();
  REQUIRE_FALSE(c);
  CHECK(c.error().code == ErrorCode::out_of_memory);
  CHECK(c.error().message.find("2 blocks") != std::string::npos);
  pool.release(*a);
  CHECK(pool.allocate());
}

TEST_CASE("given blocks in use, when more are allocated, then no address changes") {
  BlockPool pool(BlockLayout(kKind, KvType::f16, KvType::f16), 100);
  const auto first = pool.allocate();
  REQUIRE(first);
  const std::byte* address = pool.data(*first);
  CHECK(reinterpret_cast<uintptr_t>(address) % 64 == 0);
  for (int i = 0; i < 99; ++i) REQUIRE(pool.allocate());
  CHECK(pool.data(*first) == address);
}

TEST_CASE("given a shared block, when one of two lets go, then it stays in use") {
  BlockPool pool(BlockLayout(kKind, KvType::f32, KvType::f32), 4);
  const auto block = pool.allocate();
  REQUIRE(block);
  pool.add_reference(*block);
  CHECK(pool.statistics().references == 2);
  pool.release(*block);
  CHECK(pool.statistics().blocks_in_use == 1);
  pool.release(*block);
  CHECK(pool.statistics().blocks_in_use == 0);
  CHECK(pool.statistics().blocks_free == 1);
  pool.trim();
  CHECK(pool.statistics().bytes_allocated == 0);
  const auto again = pool.allocate();
  REQUIRE(again);
  std::memset(pool.data(*again), 1, pool.layout().block_bytes());
}
