// What a forward step did: counted, not estimated.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "cpu_kernels/kernels.h"

namespace kvasir {

/// Named zones of a step, timed on the calling thread. `wait` is what that thread waited at barriers
/// in all of them, which is left out of the others; they add up to the time inside the region.
enum class Zone : uint8_t { embed, norm, matmul, rope, attention, activation, wait, count };
inline constexpr const char* kZoneNames[] = {"embed",     "norm",       "matmul", "rope and append",
                                             "attention", "activation", "waiting at barriers"};

/// Sums over one or several steps. Kernel counts are calls of one operation on the whole batch.
struct ForwardStatistics {
  int64_t steps = 0;
  int64_t rows = 0;
  int64_t weight_bytes = 0;           ///< packed weight bytes read, each matrix once a step
  int64_t kv_bytes = 0;               ///< bytes of KV blocks read by attention, each block once a step
  int64_t weight_multiply_adds = 0;
  int64_t attention_multiply_adds = 0;
  std::array<int64_t, static_cast<size_t>(kernels::WeightFormat::count)> matmul_calls = {};
  int64_t library_matmul_calls = 0;   ///< of matmul_calls, those that --math fast gave to a library
  int64_t attention_calls = 0;
  std::array<std::chrono::nanoseconds, static_cast<size_t>(Zone::count)> zone_time = {};
  /// Zone::matmul by weight type. A pass over matrices of several types is split by the bytes of
  /// each, so that no piece of work costs a look at the clock.
  std::array<std::chrono::nanoseconds, static_cast<size_t>(kernels::WeightFormat::count)>
      matmul_time = {};
  std::chrono::nanoseconds time{0};

  int64_t bytes() const { return weight_bytes + kv_bytes; }
  int64_t multiply_adds() const { return weight_multiply_adds + attention_multiply_adds; }
  void add(const ForwardStatistics& other);
};

}  // namespace kvasir
