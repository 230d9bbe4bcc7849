// The integer peak of a vocabulary, to hold the matrix kernels against.
#pragma once

#include "cpu_kernels/kernels.h"
#include "cpu_kernels/simd/lanes.h"

namespace kvasir::kernels::generic {

/// Every product has codes of its own. With the same ones for all chains the compiler took one
/// product for all of them: "peaks" of 1,183 G/s without VNNI, where 509 is what the pipes do, 340
/// (254) on AVX2.
template <class V>
int64_t multiply_add_peak(int64_t rounds) {
  using Dot = typename V::template Dot<simd::Code::u4>;
  constexpr int kChains = V::kQuantizedRows;
  constexpr int kLines = 8;
  alignas(64) std::byte line_bytes[64];
  alignas(64) int8_t codes[kLines * kChains * 4];
  for (int i = 0; i < 64; ++i) line_bytes[i] = static_cast<std::byte>(i % 16);
  for (int i = 0; i < kLines * kChains * 4; ++i) codes[i] = static_cast<int8_t>(i % 127);
  const auto line = V::load_line(line_bytes);
  Dot dots[kChains];
#pragma GCC unroll 16
  for (int chain = 0; chain < kChains; ++chain) Dot::start(dots[chain]);
  for (int64_t round = 0; round < rounds; ++round) {
    const int8_t* x = codes;
    asm volatile("" : "+r"(x) : : "memory");  // the codes may have changed: nothing is hoisted
#pragma GCC unroll 8
    for (int i = 0; i < kLines; ++i) {
#pragma GCC unroll 16
      for (int chain = 0; chain < kChains; ++chain)
        Dot::add(dots[chain], line, x + 4 * (i * kChains + chain));
    }
  }
  typename V::F sum = V::F::broadcast(0);
#pragma GCC unroll 16
  for (int chain = 0; chain < kChains; ++chain) sum = V::F::add(sum, V::to_floats(Dot::widen(dots[chain])));
  alignas(64) float out[16];
  V::F::store(out, sum);
  asm volatile("" : : "r"(out) : "memory");  // the sums are used
  return rounds * kLines * kChains * 64;
}

}  // namespace kvasir::kernels::generic
