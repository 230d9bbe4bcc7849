// AVX-512 F, BW, DQ, VL: 16 lanes are one register. `Dots` supplies the dot products, so that the
// VNNI folder changes nothing else.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "cpu_kernels/simd/lanes.h"

namespace kvasir::kernels::avx512 {

/// Everything that VNNI does not change. `Self` is the vocabulary that inherits it.
template <class Self>
struct Base {
  using Arch = xsimd::avx512bw;
  using F = simd::Floats<Self>;
  using Batch = xsimd::batch<float, Arch>;

  static constexpr int kQuantizedRows = 8;
  // Streamed against by tile, G multiply-adds/s: Q4_1, 16 rows 320, 282; 64 rows 316, 302; with VNNI
  // 377, 332 and 375, 363. From 128 rows on blocks keep the activations in L2.
  static constexpr int kStreamedRows = 64;
  // 6 rows x 4 panels are 24 sums. f16, 128 rows, 1,024 outputs, 4,096 columns: 3,980 us (270 GFLOP/s),
  // 8 x 2 4,030, 8 x 3 4,860, 12 x 2 5,090, 8 x 1 4,570. With 1 row a single panel only waits for its
  // one chain, 3.9 cycles a column: 2,030 us for 8,192 outputs against 1,460 with 4.
  static constexpr int kDenseRows = 6;
  static constexpr int kDenseFewRows = 3;
  static constexpr int kDenseSums = 24;
  static constexpr int kScoreRows = 8;    ///< x 32 keys = 16 registers
  static constexpr int kFewRows = 4;
  // Few rows against widened, 1,024 keys of f16 from memory, dim 64: 15 us against 25 at 8 rows, 26
  // against 39 at 16, 46 against 62 at 32; from cache 41 against 45 at 32. More was not tried.
  static constexpr int kWidenRows = 33;
  static constexpr int kScoreChains = 12;  ///< rows x blocks x 32 keys when there are few rows
  static constexpr int kOutputRows = 6;
  static constexpr int kOutputWide = 4;   ///< 6 rows x 64 channels = 24 registers

  KVASIR_INLINE Batch fused(const Batch& a, const Batch& b, const Batch& c) {
    return _mm512_fmadd_ps(a, b, c);
  }
  KVASIR_INLINE Batch quotient(const Batch& a, const Batch& b) { return _mm512_div_ps(a, b); }
  KVASIR_INLINE Batch larger(const Batch& a, const Batch& b) { return _mm512_max_ps(a, b); }
  KVASIR_INLINE Batch smaller(const Batch& a, const Batch& b) { return _mm512_min_ps(a, b); }
  KVASIR_INLINE float largest_lane(__m512 x) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    const __m128 quarter = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 pairs = _mm_max_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_max_ss(pairs, _mm_movehdup_ps(pairs)));
  }
  KVASIR_INLINE Batch scale_by_power(const Batch& y, const Batch& n) {
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(y),
                                                _mm512_slli_epi32(_mm512_castps_si512(n), 23)));
  }
  /// x where it is NaN, else y.
  KVASIR_INLINE Batch keep_nan(const Batch& x, const Batch& y) {
    return _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
  }
  KVASIR_INLINE Batch magnitude(const Batch& x) {
    return _mm512_andnot_ps(_mm512_set1_ps(-0.0F), x);
  }
  KVASIR_INLINE Batch with_sign_of(const Batch& x, const Batch& s) {
    return _mm512_or_ps(x, _mm512_and_ps(_mm512_set1_ps(-0.0F), s));
  }

  KVASIR_INLINE F load_half(const std::byte* p) {
    F out;
    out.r[0] = _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return out;
  }
  KVASIR_INLINE void store_half(std::byte* p, const F& x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtps_ph(x.r[0], _MM_FROUND_TO_NEAREST_INT));
  }

  KVASIR_INLINE uint32_t largest_magnitude(const F& a, const F& b) {
    const __m512i mask = _mm512_set1_epi32(0x7FFFFFFF);
    return _mm512_reduce_max_epu32(
        _mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(a.r[0]), mask),
                         _mm512_and_si512(_mm512_castps_si512(b.r[0]), mask)));
  }
  KVASIR_INLINE int32_t store_codes(int8_t* codes, const F& a, const F& b) {
    const __m512i i0 = _mm512_cvtps_epi32(a.r[0]);
    const __m512i i1 = _mm512_cvtps_epi32(b.r[0]);
    auto* at = reinterpret_cast<__m128i*>(codes);
    _mm_storeu_si128(at, _mm512_cvtepi32_epi8(i0));
    _mm_storeu_si128(at + 1, _mm512_cvtepi32_epi8(i1));
    return _mm512_reduce_add_epi32(_mm512_add_epi32(i0, i1));
  }

  struct Line {
    __m512i r;
  };
  KVASIR_INLINE Line load_line(const std::byte* p) { return {_mm512_load_si512(p)}; }
  KVASIR_INLINE void store_line(std::byte* p, const Line& x) { _mm512_store_si512(p, x.r); }
  KVASIR_INLINE Line low_nibbles(const Line& x) {
    return {_mm512_and_si512(x.r, _mm512_set1_epi8(15))};
  }
  KVASIR_INLINE Line high_nibbles(const Line& x) {
    return {_mm512_and_si512(_mm512_srli_epi16(x.r, 4), _mm512_set1_epi8(15))};
  }
  KVASIR_INLINE __m512i four_codes(const int8_t* x) {
    int32_t four;
    __builtin_memcpy(&four, x, 4);
    return _mm512_set1_epi32(four);
  }
  KVASIR_INLINE F to_floats(__m512i sum) {
    F out;
    out.r[0] = _mm512_cvtepi32_ps(sum);
    return out;
  }
};

struct Isa : Base<Isa> {
  static constexpr const char* kName = "avx512";

  /// See avx2: GCC spills without it.
  KVASIR_INLINE void add_in_order(__m512i& sum) { asm("" : "+v"(sum)); }

  /// The bounds are those of AVX2: 8 pair sums of at most 3,810 fit int16.
  struct DotUnsigned4 {
    __m512i sum;
    KVASIR_INLINE void start(DotUnsigned4& dot, int32_t) { dot.sum = _mm512_setzero_si512(); }
    KVASIR_INLINE void add(DotUnsigned4& dot, const Line& w, const int8_t* x) {
      dot.sum = _mm512_add_epi16(dot.sum, _mm512_maddubs_epi16(w.r, four_codes(x)));
      add_in_order(dot.sum);
    }
    KVASIR_INLINE F finish(const DotUnsigned4& dot) {
      return to_floats(_mm512_madd_epi16(dot.sum, _mm512_set1_epi16(1)));
    }
  };

  /// Signs by mask: AVX-512 has no vpsignb. |w| <= 128, |x| <= 127: a pair sum fits int16.
  struct DotSigned8 {
    __m512i sum;
    KVASIR_INLINE void start(DotSigned8& dot, int32_t) { dot.sum = _mm512_setzero_si512(); }
    KVASIR_INLINE void add(DotSigned8& dot, const Line& w, const int8_t* x) {
      const __m512i four = four_codes(x);
      const __mmask64 negative = _mm512_movepi8_mask(w.r);
      const __m512i turned =
          _mm512_mask_sub_epi8(four, negative, _mm512_setzero_si512(), four);
      const __m512i pairs = _mm512_maddubs_epi16(_mm512_abs_epi8(w.r), turned);
      dot.sum = _mm512_add_epi32(dot.sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
      add_in_order(dot.sum);
    }
    KVASIR_INLINE F finish(const DotSigned8& dot) { return to_floats(dot.sum); }
  };
  KVASIR_INLINE Line prepare_signed(const Line& w) { return w; }
};

}  // namespace kvasir::kernels::avx512
