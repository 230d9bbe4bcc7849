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
  /// 16 bfloat16: the upper halves of floats.
  KVASIR_INLINE F load_bfloat(const std::byte* p) {
    F out;
    out.r[0] = _mm512_castsi512_ps(_mm512_slli_epi32(
        _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 16));
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

  /// 16 int32, or 16 pairs of int16.
  struct Ints {
    __m512i r;
  };
  KVASIR_INLINE Ints zero_ints() { return {_mm512_setzero_si512()}; }
  KVASIR_INLINE Ints add(const Ints& a, const Ints& b) { return {_mm512_add_epi32(a.r, b.r)}; }
  /// a - b * 2^n.
  template <int n>
  KVASIR_INLINE Ints subtract_shifted(const Ints& a, const Ints& b) {
    return {_mm512_sub_epi32(a.r, _mm512_slli_epi32(b.r, n))};
  }
  KVASIR_INLINE Ints broadcast(int32_t x) { return {_mm512_set1_epi32(x)}; }
  KVASIR_INLINE F to_floats(const Ints& x) {
    F out;
    out.r[0] = _mm512_cvtepi32_ps(x.r);
    return out;
  }
  KVASIR_INLINE Ints load_ints(const std::byte* p) { return {_mm512_load_si512(p)}; }
  KVASIR_INLINE void store_ints(std::byte* p, const Ints& x) { _mm512_store_si512(p, x.r); }
  /// 16 pairs of bytes as pairs of int16.
  KVASIR_INLINE Ints load_signed_pairs(const std::byte* p) {
    return {_mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
  }
  KVASIR_INLINE Ints load_unsigned_pairs(const std::byte* p) {
    return {_mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
  }
  /// The 4 low (kShift 0) or high (kShift 4) bits of every byte-sized int16.
  template <int kShift>
  KVASIR_INLINE Ints nibble(const Ints& x) {
    return {_mm512_and_si512(_mm512_srli_epi16(x.r, kShift), _mm512_set1_epi16(15))};
  }
  KVASIR_INLINE __m512i two_factors(const int16_t* two) {
    int32_t both;
    __builtin_memcpy(&both, two, 4);
    return _mm512_set1_epi32(both);
  }
  /// 16 exponents of E8M0, doubled values' scale: 2^(e - 128), subnormal below 2.
  KVASIR_INLINE F load_powers(const std::byte* p) {
    const __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    const __m512i small = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
    F out;
    out.r[0] = _mm512_castsi512_ps(_mm512_mask_mov_epi32(
        normal, _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2)), small));
    return out;
  }

  struct Line {
    __m512i r;
  };
  KVASIR_INLINE Line load_line(const std::byte* p) { return {_mm512_load_si512(p)}; }
  KVASIR_INLINE void store_line(std::byte* p, const Line& x) { _mm512_store_si512(p, x.r); }
  /// kBits bits of every byte from bit kFrom to bit kTo, all other bits 0.
  template <int kFrom, int kTo, int kBits>
  KVASIR_INLINE Line move_bits(const Line& x) {
    const __m512i mask = _mm512_set1_epi8(static_cast<char>(((1 << kBits) - 1) << kTo));
    const __m512i moved = kFrom > kTo   ? _mm512_srli_epi16(x.r, kFrom > kTo ? kFrom - kTo : 0)
                          : kFrom < kTo ? _mm512_slli_epi16(x.r, kFrom < kTo ? kTo - kFrom : 0)
                                        : x.r;
    return {_mm512_and_si512(moved, mask)};
  }
  KVASIR_INLINE Line either(const Line& a, const Line& b) { return {_mm512_or_si512(a.r, b.r)}; }
  /// The values that codes 0..15 stand for, plus kBias.
  template <int kBias>
  KVASIR_INLINE Line look_up(const Line& x, const int8_t (&values)[16]) {
    const __m512i list = _mm512_add_epi8(
        _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values))),
        _mm512_set1_epi8(static_cast<char>(kBias)));
    return {_mm512_shuffle_epi8(list, x.r)};
  }
  KVASIR_INLINE __m512i four_codes(const int8_t* x) {
    int32_t four;
    __builtin_memcpy(&four, x, 4);
    return _mm512_set1_epi32(four);
  }
};

struct Isa : Base<Isa> {
  static constexpr const char* kName = "avx512";
  static constexpr int kSignedBias = 0;  ///< what Dot<Code::s8> wants added to its codes

  /// Scales of one sub-block, twice in each pair, as vpmaddwd takes them.
  KVASIR_INLINE Ints first_scales(const Ints& pairs) {
    return {_mm512_mask_mov_epi16(pairs.r, 0xAAAAAAAAU, _mm512_slli_epi32(pairs.r, 16))};
  }
  KVASIR_INLINE Ints second_scales(const Ints& pairs) {
    return {_mm512_mask_mov_epi16(pairs.r, 0x55555555U, _mm512_srli_epi32(pairs.r, 16))};
  }
  /// sum + first of the pair * two[0] + second * two[1].
  KVASIR_INLINE Ints add_pair_products(const Ints& sum, const Ints& pairs, const int16_t* two) {
    return {_mm512_add_epi32(sum.r, _mm512_madd_epi16(pairs.r, two_factors(two)))};
  }

  /// See avx2: GCC spills without it.
  KVASIR_INLINE void add_in_order(__m512i& sum) { asm("" : "+v"(sum)); }

  /// The bounds are those of AVX2. Signs by mask: AVX-512 has no vpsignb.
  template <simd::Code kCode>
  struct Dot {
    static constexpr int kRun = kCode == simd::Code::u4   ? 8
                                : kCode == simd::Code::u5 ? 4
                                : kCode == simd::Code::u6 ? 2
                                                          : 1;
    __m512i sum;
    KVASIR_INLINE void start(Dot& dot) { dot.sum = _mm512_setzero_si512(); }
    KVASIR_INLINE void add(Dot& dot, const Line& w, const int8_t* x) {
      const __m512i four = four_codes(x);
      if constexpr (kCode == simd::Code::s8) {
        const __m512i turned = _mm512_mask_sub_epi8(four, _mm512_movepi8_mask(w.r),
                                                    _mm512_setzero_si512(), four);
        dot.sum = _mm512_maddubs_epi16(_mm512_abs_epi8(w.r), turned);
      } else {
        dot.sum = _mm512_add_epi16(dot.sum, _mm512_maddubs_epi16(w.r, four));
        add_in_order(dot.sum);
      }
    }
    KVASIR_INLINE Ints widen(const Dot& dot) {
      return {_mm512_madd_epi16(dot.sum, _mm512_set1_epi16(1))};
    }
    KVASIR_INLINE Ints scaled(const Dot& dot, const Ints& scales) {
      return {_mm512_madd_epi16(dot.sum, scales.r)};
    }
    KVASIR_INLINE void keep_order(Ints& total) { add_in_order(total.r); }
  };
};

}  // namespace kvasir::kernels::avx512
