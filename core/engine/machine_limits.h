// What this machine can do at most, measured: the speeds to hold ours against.
#pragma once

#include <cstddef>
#include <span>

#include "core/threads/threads.h"
#include "cpu_kernels/kernels.h"
#include "kvasir/result.h"

namespace kvasir {

/// Bytes per second at which all threads together read `memory`, best of `rounds`.
double measure_read_bandwidth(std::span<const std::byte> memory, Threads& threads, int rounds = 5);

/// The same over 1 GiB of fresh memory: larger than any cache.
Result<double> measure_memory_bandwidth(Threads& threads);

/// Multiply-adds of 8-bit integers per second of all threads together, best of 5, by the
/// instructions this kernel table uses, from registers.
double measure_multiply_add_peak(const kernels::KernelTable& kernels, Threads& threads);

}  // namespace kvasir
