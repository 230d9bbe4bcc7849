// AVX2 with FMA and F16C: 16 lanes are two registers.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "cpu_kernels/simd/lanes.h"

namespace kvasir::kernels::avx2 {

struct Isa {
  using Arch = xsimd::fma3<xsimd::avx2>;
  using F = simd::Floats<Isa>;
  using Batch = F::Batch;
  static constexpr const char* kName = "avx2";

  // Rows of a batch kept in registers at once: 16 registers hold 3 rows of 2 int16 sums and 2 weights
  // with room for the products; 4 rows spill one sum a line.
  static constexpr int kQuantizedRows = 3;
  static constexpr int kStreamedRows = 8;  ///< Q4_1, 8 rows: 158 G/s streamed, 150 by tile; 16: 158, 164
  // 6 rows x 1 panel are 12 sums of 16 registers; 2 rows take 3 panels. 3 rows x 2 panels spilled:
  // 435 us against 272 (f16, 576 columns, 8,192 outputs).
  static constexpr int kDenseRows = 6;
  static constexpr int kDenseFewRows = 2;
  static constexpr int kDenseSums = 6;
  static constexpr int kScoreRows = 3;    ///< x 32 keys = 12 registers
  static constexpr int kFewRows = 3;
  // Few rows against widened, 1,024 keys of f16, dim 64: 32 us against 34 from memory and 29 against 26
  // from cache at 8 rows; 51 against 46, 47 against 34 at 12.
  static constexpr int kWidenRows = 8;
  static constexpr int kScoreChains = 3;  ///< rows x blocks x 32 keys when there are few rows
  static constexpr int kOutputRows = 3;
  static constexpr int kOutputWide = 2;   ///< 3 rows x 32 channels = 12 registers

  KVASIR_INLINE Batch fused(const Batch& a, const Batch& b, const Batch& c) {
    return _mm256_fmadd_ps(a, b, c);
  }
  KVASIR_INLINE Batch quotient(const Batch& a, const Batch& b) { return _mm256_div_ps(a, b); }
  KVASIR_INLINE Batch larger(const Batch& a, const Batch& b) { return _mm256_max_ps(a, b); }
  KVASIR_INLINE Batch smaller(const Batch& a, const Batch& b) { return _mm256_min_ps(a, b); }
  KVASIR_INLINE float largest_lane(__m256 x) {
    const __m128 quarter = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 pairs = _mm_max_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_max_ss(pairs, _mm_movehdup_ps(pairs)));
  }
  KVASIR_INLINE Batch scale_by_power(const Batch& y, const Batch& n) {
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(y),
                                                _mm256_slli_epi32(_mm256_castps_si256(n), 23)));
  }
  /// x where it is NaN, else y.
  KVASIR_INLINE Batch keep_nan(const Batch& x, const Batch& y) {
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  }
  KVASIR_INLINE Batch magnitude(const Batch& x) {
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), x);
  }
  KVASIR_INLINE Batch with_sign_of(const Batch& x, const Batch& s) {
    return _mm256_or_ps(x, _mm256_and_ps(_mm256_set1_ps(-0.0F), s));
  }

  KVASIR_INLINE F load_half(const std::byte* p) {
    const auto* at = reinterpret_cast<const __m128i*>(p);
    F out;
    out.r[0] = _mm256_cvtph_ps(_mm_loadu_si128(at));
    out.r[1] = _mm256_cvtph_ps(_mm_loadu_si128(at + 1));
    return out;
  }
  KVASIR_INLINE void store_half(std::byte* p, const F& x) {
    auto* at = reinterpret_cast<__m128i*>(p);
    _mm_storeu_si128(at, _mm256_cvtps_ph(x.r[0], _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128(at + 1, _mm256_cvtps_ph(x.r[1], _MM_FROUND_TO_NEAREST_INT));
  }

  // -- quantising a group of 32 ----------------------------------------------------------------

  /// The largest of 32 bit patterns without their signs.
  KVASIR_INLINE uint32_t largest_magnitude(const F& a, const F& b) {
    const __m256i mask = _mm256_set1_epi32(0x7FFFFFFF);
    __m256i m = _mm256_setzero_si256();
    for (const F* x : {&a, &b}) {
      m = _mm256_max_epu32(m, _mm256_and_si256(_mm256_castps_si256(x->r[0]), mask));
      m = _mm256_max_epu32(m, _mm256_and_si256(_mm256_castps_si256(x->r[1]), mask));
    }
    __m128i h = _mm_max_epu32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
    h = _mm_max_epu32(h, _mm_shuffle_epi32(h, 0x4E));
    h = _mm_max_epu32(h, _mm_shuffle_epi32(h, 0xB1));
    return static_cast<uint32_t>(_mm_cvtsi128_si32(h));
  }
  /// Rounds 32 values in [-127, 127] to int8 (ties to even), stores them, returns their sum.
  KVASIR_INLINE int32_t store_codes(int8_t* codes, const F& a, const F& b) {
    const __m256i i0 = _mm256_cvtps_epi32(a.r[0]);
    const __m256i i1 = _mm256_cvtps_epi32(a.r[1]);
    const __m256i i2 = _mm256_cvtps_epi32(b.r[0]);
    const __m256i i3 = _mm256_cvtps_epi32(b.r[1]);
    const __m256i s = _mm256_add_epi32(_mm256_add_epi32(i0, i1), _mm256_add_epi32(i2, i3));
    // Packing works within halves: put the eight groups of four back in order.
    const __m256i packed =
        _mm256_packs_epi16(_mm256_packs_epi32(i0, i1), _mm256_packs_epi32(i2, i3));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes),
                        _mm256_permutevar8x32_epi32(packed, order));
    __m128i h = _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
    h = _mm_add_epi32(h, _mm_shuffle_epi32(h, 0x4E));
    h = _mm_add_epi32(h, _mm_shuffle_epi32(h, 0xB1));
    return _mm_cvtsi128_si32(h);
  }

  // -- dot products of codes -------------------------------------------------------------------

  /// 16 rows x 4 columns of codes.
  struct Line {
    __m256i r[2];
  };
  KVASIR_INLINE Line load_line(const std::byte* p) {
    const auto* at = reinterpret_cast<const __m256i*>(p);
    return {{_mm256_load_si256(at), _mm256_load_si256(at + 1)}};
  }
  KVASIR_INLINE void store_line(std::byte* p, const Line& x) {
    auto* at = reinterpret_cast<__m256i*>(p);
    _mm256_store_si256(at, x.r[0]);
    _mm256_store_si256(at + 1, x.r[1]);
  }
  KVASIR_INLINE Line low_nibbles(const Line& x) {
    const __m256i mask = _mm256_set1_epi8(15);
    return {{_mm256_and_si256(x.r[0], mask), _mm256_and_si256(x.r[1], mask)}};
  }
  KVASIR_INLINE Line high_nibbles(const Line& x) {
    const __m256i mask = _mm256_set1_epi8(15);
    return {{_mm256_and_si256(_mm256_srli_epi16(x.r[0], 4), mask),
             _mm256_and_si256(_mm256_srli_epi16(x.r[1], 4), mask)}};
  }
  KVASIR_INLINE __m256i four_codes(const int8_t* x) {
    int32_t four;
    __builtin_memcpy(&four, x, 4);
    return _mm256_set1_epi32(four);
  }
  KVASIR_INLINE F to_floats(__m256i a, __m256i b) {
    F out;
    out.r[0] = _mm256_cvtepi32_ps(a);
    out.r[1] = _mm256_cvtepi32_ps(b);
    return out;
  }

  /// Keeps GCC from adding eight lines' products as a tree: it then holds all 48 of them, 30 of those
  /// on the stack. 171 instead of 119 G multiply-adds/s in Q4_1
  /// of 512 rows.
  KVASIR_INLINE void add_in_order(__m256i& sum) { asm("" : "+x"(sum)); }

  /// Codes 0..15: a pair sum is at most 2 * 15 * 127 = 3,810, and the 8 lines of a group add up to
  /// at most 30,480 in int16; so one widening serves a whole group.
  struct DotUnsigned4 {
    __m256i sum[2];
    KVASIR_INLINE void start(DotUnsigned4& dot, int32_t) {
      dot.sum[0] = dot.sum[1] = _mm256_setzero_si256();
    }
    KVASIR_INLINE void add(DotUnsigned4& dot, const Line& w, const int8_t* x) {
      const __m256i four = four_codes(x);
      dot.sum[0] = _mm256_add_epi16(dot.sum[0], _mm256_maddubs_epi16(w.r[0], four));
      dot.sum[1] = _mm256_add_epi16(dot.sum[1], _mm256_maddubs_epi16(w.r[1], four));
      add_in_order(dot.sum[0]);
      add_in_order(dot.sum[1]);
    }
    KVASIR_INLINE F finish(const DotUnsigned4& dot) {
      const __m256i ones = _mm256_set1_epi16(1);
      return to_floats(_mm256_madd_epi16(dot.sum[0], ones), _mm256_madd_epi16(dot.sum[1], ones));
    }
  };

  /// Codes -128..127 as |w| times x with w's sign: a pair sum is at most 2 * 128 * 127 = 32,512,
  /// so every line is widened by itself.
  struct DotSigned8 {
    __m256i sum[2];
    KVASIR_INLINE void start(DotSigned8& dot, int32_t) {
      dot.sum[0] = dot.sum[1] = _mm256_setzero_si256();
    }
    KVASIR_INLINE void add(DotSigned8& dot, const Line& w, const int8_t* x) {
      const __m256i ones = _mm256_set1_epi16(1);
      const __m256i four = four_codes(x);
      for (int i = 0; i < 2; ++i) {
        const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w.r[i]),
                                                   _mm256_sign_epi8(four, w.r[i]));
        dot.sum[i] = _mm256_add_epi32(dot.sum[i], _mm256_madd_epi16(pairs, ones));
        add_in_order(dot.sum[i]);
      }
    }
    KVASIR_INLINE F finish(const DotSigned8& dot) { return to_floats(dot.sum[0], dot.sum[1]); }
  };
  /// What DotSigned8 takes: here the codes as they are.
  KVASIR_INLINE Line prepare_signed(const Line& w) { return w; }
};

}  // namespace kvasir::kernels::avx2
