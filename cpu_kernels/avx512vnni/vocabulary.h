// AVX-512 with VNNI: vpdpbusd adds four products of a u8 and an s8 to each int32 lane.
#pragma once

#include "cpu_kernels/avx512/vocabulary.h"

namespace kvasir::kernels::avx512vnni {

struct Isa : avx512::Base<Isa> {
  static constexpr const char* kName = "avx512vnni";
  // 12 integer and 12 float sums, one weight line, scale and minimum: 27 of 32 registers, and
  // enough chains to hide vpdpbusd's latency of 4 to 5 cycles at two a cycle.
  static constexpr int kQuantizedRows = 12;

  /// The first factor of vpdpbusd is unsigned: signed codes come with 128 added.
  static constexpr int kSignedBias = 128;
  KVASIR_INLINE Line flip_signs(const Line& w) {
    return {_mm512_xor_si512(w.r, _mm512_set1_epi8(-128))};
  }

  /// Scales of one sub-block as int32.
  KVASIR_INLINE Ints first_scales(const Ints& pairs) {
    return {_mm512_srai_epi32(_mm512_slli_epi32(pairs.r, 16), 16)};
  }
  KVASIR_INLINE Ints second_scales(const Ints& pairs) { return {_mm512_srai_epi32(pairs.r, 16)}; }
  KVASIR_INLINE Ints multiply(const Ints& a, const Ints& b) { return {_mm512_mullo_epi32(a.r, b.r)}; }
  /// sum + first of the pair * two[0] + second * two[1].
  KVASIR_INLINE Ints add_pair_products(const Ints& sum, const Ints& pairs, const int16_t* two) {
    return {_mm512_dpwssd_epi32(sum.r, pairs.r, two_factors(two))};
  }

  /// Exact in int32 for any number of lines.
  template <simd::Code>
  struct Dot {
    static constexpr int kRun = 8;
    __m512i sum;
    KVASIR_INLINE void start(Dot& dot) { dot.sum = _mm512_setzero_si512(); }
    KVASIR_INLINE void add(Dot& dot, const Line& w, const int8_t* x) {
      dot.sum = _mm512_dpbusd_epi32(dot.sum, w.r, four_codes(x));
    }
    KVASIR_INLINE Ints widen(const Dot& dot) { return {dot.sum}; }
    KVASIR_INLINE Ints scaled(const Dot& dot, const Ints& scales) {
      return {_mm512_mullo_epi32(dot.sum, scales.r)};
    }
    KVASIR_INLINE void keep_order(Ints&) {}
  };
};

}  // namespace kvasir::kernels::avx512vnni
