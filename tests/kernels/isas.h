// Runs a check for every table this machine has, against scalar.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "cpu_kernels/kernels.h"

namespace kvasir::kernels::test {

/// Sets that this CPU lacks, as far as they can be imitated on it.
std::vector<const KernelTable*> emulated_tables();

/// All tables but scalar that this CPU can run, emulated ones too.
inline std::vector<const KernelTable*> vector_tables() {
  std::vector<const KernelTable*> tables = emulated_tables();
  int count = 0;
  const KernelChoice* choices = kernel_choices(&count);
  for (int i = 1; i < count; ++i) {
    if (choices[i].cpu_has_it) tables.push_back(choices[i].table);
  }
  return tables;
}

/// Under qemu a product takes 50 times as long: fewer sizes there, all formats still.
inline bool is_emulated_cpu() { return std::getenv("KVASIR_TEST_EXPECTED_ISA") != nullptr; }

/// "avx2, avx512", for closing lines.
inline std::string names_of(const std::vector<const KernelTable*>& tables) {
  std::string names;
  for (const auto* table : tables) names += (names.empty() ? "" : ", ") + std::string(table->name);
  return names.empty() ? "none but scalar" : names;
}

/// Same bits, or both NaN.
inline bool same(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

inline uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}
inline float from_bits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

/// Compares whole buffers; reports how many cells differ, and the one that differs most.
inline void check_same(const std::vector<float>& expected, const std::vector<float>& actual,
                       const char* isa, const std::string& what) {
  REQUIRE(expected.size() == actual.size());
  size_t count = 0, worst = 0;
  double most = -1;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (same(expected[i], actual[i])) continue;
    ++count;
    const double difference = std::abs(static_cast<double>(expected[i]) - actual[i]);
    if (!(difference <= most)) {
      worst = i;
      most = difference;
    }
  }
  if (count == 0) return;
  FAIL(what << " on " << std::string(isa) << ": " << count << " of " << expected.size()
            << " cells differ, most cell " << worst << ": " << actual[worst] << " (bits "
            << bits_of(actual[worst]) << "), scalar says " << expected[worst] << " (bits "
            << bits_of(expected[worst]) << ")");
}

inline std::vector<float> random_floats(size_t n, unsigned seed, float scale = 1.0F) {
  std::mt19937 random(seed);
  std::vector<float> out(n);
  for (auto& v : out) v = scale * (static_cast<float>(random() >> 8) / 8388608.0F - 1.0F);
  return out;
}

/// A buffer on a 64-byte line plus an offset, full of NaN, to see what is read or written outside.
template <class T>
class Guarded {
 public:
  explicit Guarded(size_t n, size_t offset = 0) : memory_(n * sizeof(T) + 256, 0xFF), n_(n) {
    auto address = reinterpret_cast<uintptr_t>(memory_.data()) + 64;
    address = (address + 63) / 64 * 64 + offset * sizeof(T);
    data_ = reinterpret_cast<T*>(address);
  }
  T* data() { return data_; }
  T& operator[](size_t i) { return data_[i]; }
  std::vector<T> values() const { return std::vector<T>(data_, data_ + n_); }
  /// Bytes around the array are as they were.
  bool untouched_outside() const {
    const auto* begin = reinterpret_cast<const uint8_t*>(data_);
    for (const uint8_t* p = memory_.data(); p < begin; ++p)
      if (*p != 0xFF) return false;
    for (const uint8_t* p = begin + n_ * sizeof(T); p < memory_.data() + memory_.size(); ++p)
      if (*p != 0xFF) return false;
    return true;
  }

 private:
  std::vector<uint8_t> memory_;
  T* data_ = nullptr;
  size_t n_;
};

}  // namespace kvasir::kernels::test
