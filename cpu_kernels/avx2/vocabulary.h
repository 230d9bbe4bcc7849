// AVX2 with FMA and F16C: 16 lanes are two registers. `Self` supplies the dot products, so that the
// folder of AVX-VNNI changes nothing else.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "cpu_kernels/simd/lanes.h"

namespace kvasir::kernels::avx2 {

/// Everything that AVX-VNNI does not change. `Self` is the vocabulary that inherits it.
template <class Self>
struct Base {
  using Arch = xsimd::fma3<xsimd::avx2>;
  using F = simd::Floats<Self>;
  using Batch = xsimd::batch<float, Arch>;

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
  /// 16 bfloat16: the upper halves of floats.
  KVASIR_INLINE F load_bfloat(const std::byte* p) {
    const auto* at = reinterpret_cast<const __m128i*>(p);
    F out;
    for (int i = 0; i < 2; ++i) {
      out.r[i] = _mm256_castsi256_ps(
          _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(at + i)), 16));
    }
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

  // -- integers ----------------------------------------------------------------------------------

  /// 16 int32, or 16 pairs of int16.
  struct Ints {
    __m256i r[2];
  };
  KVASIR_INLINE Ints zero_ints() { return {{_mm256_setzero_si256(), _mm256_setzero_si256()}}; }
  KVASIR_INLINE Ints add(const Ints& a, const Ints& b) {
    return {{_mm256_add_epi32(a.r[0], b.r[0]), _mm256_add_epi32(a.r[1], b.r[1])}};
  }
  /// a - b * 2^n.
  template <int n>
  KVASIR_INLINE Ints subtract_shifted(const Ints& a, const Ints& b) {
    return {{_mm256_sub_epi32(a.r[0], _mm256_slli_epi32(b.r[0], n)),
             _mm256_sub_epi32(a.r[1], _mm256_slli_epi32(b.r[1], n))}};
  }
  KVASIR_INLINE Ints broadcast(int32_t x) { return {{_mm256_set1_epi32(x), _mm256_set1_epi32(x)}}; }
  KVASIR_INLINE F to_floats(const Ints& x) {
    F out;
    out.r[0] = _mm256_cvtepi32_ps(x.r[0]);
    out.r[1] = _mm256_cvtepi32_ps(x.r[1]);
    return out;
  }
  KVASIR_INLINE Ints load_ints(const std::byte* p) {
    const auto* at = reinterpret_cast<const __m256i*>(p);
    return {{_mm256_load_si256(at), _mm256_load_si256(at + 1)}};
  }
  KVASIR_INLINE void store_ints(std::byte* p, const Ints& x) {
    auto* at = reinterpret_cast<__m256i*>(p);
    _mm256_store_si256(at, x.r[0]);
    _mm256_store_si256(at + 1, x.r[1]);
  }
  /// 16 pairs of bytes as pairs of int16.
  KVASIR_INLINE Ints load_signed_pairs(const std::byte* p) {
    const auto* at = reinterpret_cast<const __m128i*>(p);
    return {{_mm256_cvtepi8_epi16(_mm_loadu_si128(at)), _mm256_cvtepi8_epi16(_mm_loadu_si128(at + 1))}};
  }
  KVASIR_INLINE Ints load_unsigned_pairs(const std::byte* p) {
    const auto* at = reinterpret_cast<const __m128i*>(p);
    return {{_mm256_cvtepu8_epi16(_mm_loadu_si128(at)), _mm256_cvtepu8_epi16(_mm_loadu_si128(at + 1))}};
  }
  /// The 4 low (kShift 0) or high (kShift 4) bits of every byte-sized int16.
  template <int kShift>
  KVASIR_INLINE Ints nibble(const Ints& x) {
    const __m256i mask = _mm256_set1_epi16(15);
    return {{_mm256_and_si256(_mm256_srli_epi16(x.r[0], kShift), mask),
             _mm256_and_si256(_mm256_srli_epi16(x.r[1], kShift), mask)}};
  }
  /// sum + first of the pair * two[0] + second * two[1].
  KVASIR_INLINE Ints add_pair_products(const Ints& sum, const Ints& pairs, const int16_t* two) {
    int32_t both;
    __builtin_memcpy(&both, two, 4);
    const __m256i factor = _mm256_set1_epi32(both);
    return {{_mm256_add_epi32(sum.r[0], _mm256_madd_epi16(pairs.r[0], factor)),
             _mm256_add_epi32(sum.r[1], _mm256_madd_epi16(pairs.r[1], factor))}};
  }
  /// 16 exponents of E8M0, doubled values' scale: 2^(e - 128), subnormal below 2.
  KVASIR_INLINE F load_powers(const std::byte* p) {
    F out;
    for (int i = 0; i < 2; ++i) {
      const __m256i e = _mm256_cvtepu8_epi32(
          _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + 8 * i)));
      const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
      const __m256i small = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
      out.r[i] = _mm256_castsi256_ps(
          _mm256_blendv_epi8(normal, small, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e)));
    }
    return out;
  }

  // -- lines of codes ----------------------------------------------------------------------------

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
  /// kBits bits of every byte from bit kFrom to bit kTo, all other bits 0.
  template <int kFrom, int kTo, int kBits>
  KVASIR_INLINE Line move_bits(const Line& x) {
    const __m256i mask = _mm256_set1_epi8(static_cast<char>(((1 << kBits) - 1) << kTo));
    Line out;
    for (int i = 0; i < 2; ++i) {
      const __m256i moved = kFrom > kTo ? _mm256_srli_epi16(x.r[i], kFrom > kTo ? kFrom - kTo : 0)
                            : kFrom < kTo ? _mm256_slli_epi16(x.r[i], kFrom < kTo ? kTo - kFrom : 0)
                                          : x.r[i];
      out.r[i] = _mm256_and_si256(moved, mask);
    }
    return out;
  }
  KVASIR_INLINE Line either(const Line& a, const Line& b) {
    return {{_mm256_or_si256(a.r[0], b.r[0]), _mm256_or_si256(a.r[1], b.r[1])}};
  }
  /// The values that codes 0..15 stand for, plus kBias.
  template <int kBias>
  KVASIR_INLINE Line look_up(const Line& x, const int8_t (&values)[16]) {
    const __m256i list = _mm256_add_epi8(
        _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values))),
        _mm256_set1_epi8(static_cast<char>(kBias)));
    return {{_mm256_shuffle_epi8(list, x.r[0]), _mm256_shuffle_epi8(list, x.r[1])}};
  }
  KVASIR_INLINE __m256i four_codes(const int8_t* x) {
    int32_t four;
    __builtin_memcpy(&four, x, 4);
    return _mm256_set1_epi32(four);
  }
};

struct Isa : Base<Isa> {
  static constexpr const char* kName = "avx2";
  static constexpr int kSignedBias = 0;  ///< what Dot<Code::s8> wants added to its codes

  /// Scales of one sub-block, twice in each pair, as vpmaddwd takes them.
  KVASIR_INLINE Ints first_scales(const Ints& pairs) {
    Ints out;
    for (int i = 0; i < 2; ++i) {
      out.r[i] = _mm256_blend_epi16(pairs.r[i], _mm256_slli_epi32(pairs.r[i], 16), 0xAA);
    }
    return out;
  }
  KVASIR_INLINE Ints second_scales(const Ints& pairs) {
    Ints out;
    for (int i = 0; i < 2; ++i) {
      out.r[i] = _mm256_blend_epi16(_mm256_srli_epi32(pairs.r[i], 16), pairs.r[i], 0xAA);
    }
    return out;
  }

  /// Keeps GCC from adding eight lines' products as a tree: it then holds all 48 of them, 30 of those
  /// on the stack. 171 instead of 119 G multiply-adds/s in Q4_1 of 512 rows.
  KVASIR_INLINE void add_in_order(__m256i& sum) { asm("" : "+x"(sum)); }

  /// Sums of products in int16, widened after kRun lines. Largest pair sums: 4 bits 2 * 15 * 127 =
  /// 3,810, 8 of which are 30,480; 5 bits 7,874, 4: 31,496; 6 bits 16,002, 2: 32,004; signed 8 bits, as
  /// |w| times x with w's sign: 2 * 128 * 127 = 32,512.
  template <simd::Code kCode>
  struct Dot {
    static constexpr int kRun = kCode == simd::Code::u4   ? 8
                                : kCode == simd::Code::u5 ? 4
                                : kCode == simd::Code::u6 ? 2
                                                          : 1;
    __m256i sum[2];
    KVASIR_INLINE void start(Dot& dot) { dot.sum[0] = dot.sum[1] = _mm256_setzero_si256(); }
    KVASIR_INLINE void add(Dot& dot, const Line& w, const int8_t* x) {
      const __m256i four = four_codes(x);
      for (int i = 0; i < 2; ++i) {
        if constexpr (kCode == simd::Code::s8) {
          dot.sum[i] = _mm256_maddubs_epi16(_mm256_abs_epi8(w.r[i]), _mm256_sign_epi8(four, w.r[i]));
        } else {
          dot.sum[i] = _mm256_add_epi16(dot.sum[i], _mm256_maddubs_epi16(w.r[i], four));
          add_in_order(dot.sum[i]);
        }
      }
    }
    KVASIR_INLINE Ints widen(const Dot& dot) {
      const __m256i ones = _mm256_set1_epi16(1);
      return {{_mm256_madd_epi16(dot.sum[0], ones), _mm256_madd_epi16(dot.sum[1], ones)}};
    }
    KVASIR_INLINE Ints scaled(const Dot& dot, const Ints& scales) {
      return {{_mm256_madd_epi16(dot.sum[0], scales.r[0]), _mm256_madd_epi16(dot.sum[1], scales.r[1])}};
    }
    KVASIR_INLINE void keep_order(Ints& total) {
      add_in_order(total.r[0]);
      add_in_order(total.r[1]);
    }
  };
};

}  // namespace kvasir::kernels::avx2
