// Arithmetic on sizes that came from a file: overflow is an answer, not a wrap.
#pragma once

#include <cstdint>
#include <optional>

namespace kvasir {

inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

inline std::optional<uint64_t> checked_multiply(uint64_t a, uint64_t b) {
  uint64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

/// Smallest multiple of `step` that is >= value; `step` > 0.
constexpr int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

/// Number of pieces of size `step` that cover `value`; `step` > 0.
constexpr int64_t divide_up(int64_t value, int64_t step) { return (value + step - 1) / step; }

}  // namespace kvasir
