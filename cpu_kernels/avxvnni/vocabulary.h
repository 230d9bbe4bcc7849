// AVX2 with AVX-VNNI: vpdpbusd on 256 bits.
#pragma once

#include "cpu_kernels/avx2/vocabulary.h"

namespace kvasir::kernels::avxvnni {

struct Isa : avx2::Base<Isa> {
  static constexpr const char* kName = "avxvnni";
  /// The first factor of vpdpbusd is unsigned: signed codes come with 128 added.
  static constexpr int kSignedBias = 128;
  KVASIR_INLINE Line flip_signs(const Line& w) {
    const __m256i top = _mm256_set1_epi8(-128);
    return {{_mm256_xor_si256(w.r[0], top), _mm256_xor_si256(w.r[1], top)}};
  }

  /// Scales of one sub-block as int32.
  KVASIR_INLINE Ints first_scales(const Ints& pairs) {
    return {{_mm256_srai_epi32(_mm256_slli_epi32(pairs.r[0], 16), 16),
             _mm256_srai_epi32(_mm256_slli_epi32(pairs.r[1], 16), 16)}};
  }
  KVASIR_INLINE Ints second_scales(const Ints& pairs) {
    return {{_mm256_srai_epi32(pairs.r[0], 16), _mm256_srai_epi32(pairs.r[1], 16)}};
  }

  /// Exact in int32 for any number of lines.
  template <simd::Code>
  struct Dot {
    static constexpr int kRun = 8;
    __m256i sum[2];
    KVASIR_INLINE void start(Dot& dot) { dot.sum[0] = dot.sum[1] = _mm256_setzero_si256(); }
    KVASIR_INLINE void add(Dot& dot, const Line& w, const int8_t* x) {
      const __m256i four = four_codes(x);
      dot.sum[0] = _mm256_dpbusd_avx_epi32(dot.sum[0], w.r[0], four);
      dot.sum[1] = _mm256_dpbusd_avx_epi32(dot.sum[1], w.r[1], four);
    }
    KVASIR_INLINE Ints widen(const Dot& dot) { return {{dot.sum[0], dot.sum[1]}}; }
    KVASIR_INLINE Ints scaled(const Dot& dot, const Ints& scales) {
      return {{_mm256_mullo_epi32(dot.sum[0], scales.r[0]),
               _mm256_mullo_epi32(dot.sum[1], scales.r[1])}};
    }
    KVASIR_INLINE void keep_order(Ints&) {}
  };
};

}  // namespace kvasir::kernels::avxvnni
