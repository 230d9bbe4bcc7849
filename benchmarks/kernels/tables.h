// What the kernel benchmarks share: the tables of this machine and memory on cache lines.
//
// bench_kernels --benchmark_filter=attention/avx2 runs one kind on one instruction set.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cpu_kernels/kernels.h"

namespace kvasir::kernels::bench {

/// Every table this CPU can run but scalar, which is written to be read.
inline std::vector<const KernelTable*> vector_tables() {
  std::vector<const KernelTable*> tables;
  int count = 0;
  const KernelChoice* choices = kernel_choices(&count);
  for (int i = 1; i < count; ++i) {
    if (choices[i].cpu_has_it) tables.push_back(choices[i].table);
  }
  return tables;
}

/// Zeroed bytes on a 64-byte line.
class Memory {
 public:
  explicit Memory(size_t bytes) : bytes_(bytes + 64) {
    const auto address = reinterpret_cast<uintptr_t>(bytes_.data());
    data_ = bytes_.data() + (64 - address % 64) % 64;
  }
  std::byte* data() { return data_; }
  float* floats() { return reinterpret_cast<float*>(data_); }

 private:
  std::vector<std::byte> bytes_;
  std::byte* data_;
};

inline std::vector<float> random_floats(size_t n) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> out(n);
  for (float& x : out) x = uniform(random);
  return out;
}

/// Rates as Google Benchmark prints them, from what one iteration did.
inline void report(benchmark::State& state, double flops, double bytes) {
  using benchmark::Counter;
  const auto n = static_cast<double>(state.iterations());
  if (flops > 0) state.counters["flop/s"] = Counter(flops * n, Counter::kIsRate);
  if (bytes > 0) state.counters["bytes/s"] = Counter(bytes * n, Counter::kIsRate);
}

void register_attention();
void register_dense();
void register_elementwise();
void register_quantized();

}  // namespace kvasir::kernels::bench
