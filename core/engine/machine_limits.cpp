#include "core/engine/machine_limits.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "core/tensor/weight_arena.h"

namespace kvasir {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Reads every cache line once; the sum keeps the reads.
uint64_t read_all(const std::byte* at, size_t size) {
  uint64_t sums[8] = {};
  for (size_t i = 0; i + 64 <= size; i += 64) {
    uint64_t words[8];
    std::memcpy(words, at + i, 64);
    for (int w = 0; w < 8; ++w) sums[w] ^= words[w];
    __builtin_prefetch(at + i + 4096);
  }
  uint64_t all = 0;
  for (const uint64_t sum : sums) all ^= sum;
  return all;
}

}  // namespace

double measure_read_bandwidth(std::span<const std::byte> memory, Threads& threads, int rounds) {
  // Small memory is read several times a round, so that a round takes at least some milliseconds.
  const size_t repeats =
      std::max<size_t>(1, (size_t{256} << 20) / std::max<size_t>(1, memory.size()));
  std::atomic<uint64_t> keep{0};
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    threads.run([&](Team& team) {
      const size_t share = memory.size() / static_cast<size_t>(team.size()) / 64 * 64;
      const std::byte* mine = memory.data() + share * static_cast<size_t>(team.thread());
      for (size_t i = 0; i < repeats; ++i) keep ^= read_all(mine, share);
      team.barrier();
    });
    best = std::max(best, static_cast<double>(memory.size() * repeats) / seconds_since(start));
  }
  return best;
}

Result<double> measure_memory_bandwidth(Threads& threads) {
  constexpr size_t kBytes = size_t{1} << 30;
  auto memory = WeightArena::allocate(kBytes);
  if (!memory) return std::move(memory).error();
  threads.run([&](Team& team) {
    team.for_pieces(static_cast<int64_t>(kBytes), 1 << 21, [&](int64_t begin, int64_t end) {
      std::memset(memory->data() + begin, 1, static_cast<size_t>(end - begin));
    });
  });
  return measure_read_bandwidth(memory->bytes(), threads);
}

double measure_multiply_add_peak(const kernels::KernelTable& kernels, Threads& threads) {
  double best = 0;
  int64_t rounds = 1000;
  for (int repeat = 0; repeat < 6;) {
    std::atomic<int64_t> done{0};
    const auto start = std::chrono::steady_clock::now();
    threads.run([&](Team& team) {
      done += kernels.multiply_add_peak(rounds);
      team.barrier();
    });
    const double seconds = seconds_since(start);
    if (seconds < 0.02) {  // too short to time
      rounds *= 4;
      continue;
    }
    best = std::max(best, static_cast<double>(done.load()) / seconds);
    ++repeat;
  }
  return best;
}

}  // namespace kvasir
