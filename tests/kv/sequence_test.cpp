#include <doctest/doctest.h>

#include <set>

#include "core/kv/sequence.h"

using namespace kvasir;      // NOLINT
using namespace kvasir::kv;  // NOLINT

namespace {

Pools make_pools(int64_t window, int64_t budget) {
  Pools pools;
  pools.kinds.push_back({.n_layers = 1, .n_kv_heads = 1, .head_dim = 16, .window = 0});
  if (window > 0) {
    pools.kinds.push_back({.n_layers = 2, .n_kv_heads = 1, .head_dim = 16, .window = window});
  }
  for (const auto& kind : pools.kinds) {
    pools.pools.push_back(
        std::make_unique<BlockPool>(BlockLayout(kind, KvType::f16, KvType::f16), budget));
  }
  return pools;
}

}  // namespace

TEST_CASE("given an empty sequence, when it grows a token at a time, then blocks come on demand") {
  auto pools = make_pools(0, 100);
  Sequence sequence(pools);
  std::vector<const std::byte*> addresses;
  for (int64_t length = 1; length <= 1000; ++length) {
    REQUIRE(sequence.reserve(length));
    sequence.commit(length);
    REQUIRE(pools.pools[0]->statistics().blocks_in_use == (length + 31) / 32);
    REQUIRE(sequence.wasted_positions() <= 31);
    std::vector<kernels::KvBlock> blocks;
    sequence.append_blocks(0, 0, length, blocks);
    REQUIRE(blocks.size() == static_cast<size_t>((length + 31) / 32));
    for (size_t i = 0; i < blocks.size(); ++i) {
      REQUIRE(blocks[i].first_position == static_cast<int64_t>(i) * 32);
      if (i < addresses.size()) REQUIRE(blocks[i].data == addresses[i]);  // growth copies nothing
    }
    if (blocks.size() > addresses.size()) addresses.push_back(blocks.back().data);
  }
}

TEST_CASE("given a budget, when a reservation does not fit, then nothing has changed") {
  auto pools = make_pools(0, 3);
  Sequence sequence(pools);
  REQUIRE(sequence.reserve(40));
  sequence.commit(40);
  CHECK_FALSE(sequence.reserve(97));
  CHECK(pools.pools[0]->statistics().blocks_in_use == 2);
  CHECK(sequence.length() == 40);
  CHECK(sequence.reserve(96));
}

TEST_CASE("given two layer kinds, when the second has no room, then the first is given back too") {
  auto pools = make_pools(64, 10);
  pools.pools[1] = std::make_unique<BlockPool>(
      BlockLayout(pools.kinds[1], KvType::f16, KvType::f16), 1);
  Sequence sequence(pools);
  CHECK_FALSE(sequence.reserve(64));
  CHECK(pools.pools[0]->statistics().blocks_in_use == 0);
  CHECK(pools.pools[1]->statistics().blocks_in_use == 0);
}

TEST_CASE("given a window of 40, when 10,000 tokens pass, then its blocks stay few and its keys whole") {
  auto pools = make_pools(40, 1000);
  Sequence sequence(pools);
  for (int64_t length = 1; length <= 10000; ++length) {
    REQUIRE(sequence.reserve(length));
    sequence.commit(length);
    REQUIRE(pools.pools[1]->statistics().blocks_in_use <= (40 + 31) / 32 + 1);
    std::vector<kernels::KvBlock> blocks;
    const int64_t first_visible = std::max<int64_t>(0, length - 40);
    sequence.append_blocks(1, first_visible, length, blocks);
    std::set<int64_t> held;
    for (const auto& block : blocks) {
      for (int64_t slot = 0; slot < 32; ++slot) held.insert(block.first_position + slot);
    }
    for (int64_t p = first_visible + 1; p < length; ++p) REQUIRE(held.count(p) == 1);
  }
  CHECK(pools.pools[0]->statistics().blocks_in_use == (10000 + 31) / 32);
}

TEST_CASE("given 100 positions, when rewound to 33, then the third and fourth block are returned") {
  auto pools = make_pools(0, 10);
  Sequence sequence(pools);
  REQUIRE(sequence.reserve(100));
  sequence.commit(100);
  REQUIRE(sequence.rewind(33));
  CHECK(sequence.length() == 33);
  CHECK(pools.pools[0]->statistics().blocks_in_use == 2);
  CHECK_FALSE(sequence.rewind(34));
  REQUIRE(sequence.rewind(0));
  CHECK(pools.pools[0]->statistics().blocks_in_use == 0);
}

TEST_CASE("given a window that moved on, when rewound too far, then it is refused and unchanged") {
  auto pools = make_pools(40, 100);
  Sequence sequence(pools);
  REQUIRE(sequence.reserve(500));
  sequence.commit(500);
  const auto refused = sequence.rewind(100);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("100") != std::string::npos);
  CHECK(sequence.length() == 500);
  CHECK(sequence.rewind(499));
  REQUIRE(sequence.rewind(0));  // from the start everything is evaluated again
  REQUIRE(sequence.reserve(10));
  sequence.commit(10);
  CHECK(sequence.slot(1, 9).slot == 9);
}

TEST_CASE("given any window, when rewound anywhere, then what the next query sees is held or it is refused") {
  for (const int64_t window : {1, 2, 31, 32, 33, 64, 65}) {
    for (const int64_t length : {31, 32, 33, 64, 96, 100}) {
      for (int64_t to = 1; to <= length; ++to) {
        auto pools = make_pools(window, 100);
        Sequence sequence(pools);
        REQUIRE(sequence.reserve(length));
        sequence.commit(length);
        const int64_t first_visible = std::max<int64_t>(0, to - window + 1);
        const int64_t first_held = std::max<int64_t>(0, length - window + 1) / 32 * 32;
        CAPTURE(window);
        CAPTURE(length);
        CAPTURE(to);
        REQUIRE(static_cast<bool>(sequence.rewind(to)) == (first_visible >= first_held));
        if (sequence.length() != to) continue;
        REQUIRE(sequence.reserve(to + 1));
        std::vector<kernels::KvBlock> blocks;
        sequence.append_blocks(1, first_visible, to + 1, blocks);
        REQUIRE(blocks.front().first_position <= first_visible);
        REQUIRE(blocks.back().first_position + 32 >= to + 1);
        REQUIRE(sequence.slot(1, to).block == blocks.back().data);
      }
    }
  }
}

TEST_CASE("given a sequence, when it ends, then all its blocks are free again") {
  auto pools = make_pools(64, 100);
  {
    Sequence sequence(pools);
    REQUIRE(sequence.reserve(777));
    sequence.commit(700);
  }
  for (const auto& pool : pools.pools) CHECK(pool->statistics().blocks_in_use == 0);
}
