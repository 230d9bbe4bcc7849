// AArch64 Advanced SIMD: 16 lanes are four registers. `Self` supplies the dot products, so that the
// folder of the dot product extension changes nothing else.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "cpu_kernels/simd/lanes.h"

namespace kvasir::kernels::neon {

/// Everything that the dot product extension does not change. `Self` is the vocabulary that inherits it.
template <class Self>
struct Base {
  using Arch = xsimd::neon64;
  using F = simd::Floats<Self>;
  using Batch = xsimd::batch<float, Arch>;

  // Of the 32 registers, tiles take: products 2 rows x 8 sums + 4 of weights; dense 6 x 4 sums + 4
  // of weights + 1; scores and outputs 2 rows x 8 sums + 8 of keys or values + 1. A third row of
  // scores would make it 33.
  static constexpr int kQuantizedRows = 2;
  static constexpr int kStreamedRows = 8;  ///< as AVX2, not measured
  static constexpr int kDenseRows = 6;
  static constexpr int kDenseFewRows = 2;
  static constexpr int kDenseSums = 6;
  static constexpr int kScoreRows = 2;
  static constexpr int kFewRows = 2;
  static constexpr int kWidenRows = 8;  ///< as AVX2, not measured
  static constexpr int kScoreChains = 2;
  static constexpr int kOutputRows = 2;
  static constexpr int kOutputWide = 2;

  KVASIR_INLINE Batch fused(const Batch& a, const Batch& b, const Batch& c) {
    return vfmaq_f32(c, a, b);
  }
  KVASIR_INLINE Batch quotient(const Batch& a, const Batch& b) { return vdivq_f32(a, b); }
  // Not vmaxq and vminq: those give NaN when either is, and +0 for zeros of both signs.
  KVASIR_INLINE Batch larger(const Batch& a, const Batch& b) {
    return vbslq_f32(vcgtq_f32(a, b), a, b);
  }
  KVASIR_INLINE Batch smaller(const Batch& a, const Batch& b) {
    return vbslq_f32(vcltq_f32(a, b), a, b);
  }
  KVASIR_INLINE float largest_lane(float32x4_t x) { return vmaxvq_f32(x); }
  KVASIR_INLINE Batch scale_by_power(const Batch& y, const Batch& n) {
    return vreinterpretq_f32_s32(
        vaddq_s32(vreinterpretq_s32_f32(y), vshlq_n_s32(vreinterpretq_s32_f32(n), 23)));
  }
  /// x where it is NaN, else y.
  KVASIR_INLINE Batch keep_nan(const Batch& x, const Batch& y) {
    return vbslq_f32(vceqq_f32(x, x), y, x);
  }
  KVASIR_INLINE Batch magnitude(const Batch& x) { return vabsq_f32(x); }
  KVASIR_INLINE Batch with_sign_of(const Batch& x, const Batch& s) {
    return vbslq_f32(vdupq_n_u32(0x80000000U), s, x);
  }

  KVASIR_INLINE F load_half(const std::byte* p) {
    F out;
    for (int i = 0; i < 4; ++i) {
      const uint16x4_t bits = vld1_u16(reinterpret_cast<const uint16_t*>(p) + 4 * i);
      out.r[i] = vcvt_f32_f16(vreinterpret_f16_u16(bits));
    }
    return out;
  }
  /// 16 bfloat16: the upper halves of floats.
  KVASIR_INLINE F load_bfloat(const std::byte* p) {
    F out;
    for (int i = 0; i < 4; ++i) {
      const uint16x4_t bits = vld1_u16(reinterpret_cast<const uint16_t*>(p) + 4 * i);
      out.r[i] = vreinterpretq_f32_u32(vshll_n_u16(bits, 16));
    }
    return out;
  }
  KVASIR_INLINE void store_half(std::byte* p, const F& x) {
    for (int i = 0; i < 4; ++i) {
      vst1_u16(reinterpret_cast<uint16_t*>(p) + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(x.r[i])));
    }
  }

  // -- quantising a group of 32 ----------------------------------------------------------------

  /// The largest of 32 bit patterns without their signs.
  KVASIR_INLINE uint32_t largest_magnitude(const F& a, const F& b) {
    const uint32x4_t mask = vdupq_n_u32(0x7FFFFFFFU);
    uint32x4_t m = vdupq_n_u32(0);
    for (int i = 0; i < 4; ++i) {
      m = vmaxq_u32(m, vandq_u32(vreinterpretq_u32_f32(a.r[i]), mask));
      m = vmaxq_u32(m, vandq_u32(vreinterpretq_u32_f32(b.r[i]), mask));
    }
    return vmaxvq_u32(m);
  }
  /// Rounds 32 values in [-127, 127] to int8 (ties to even), stores them, returns their sum.
  KVASIR_INLINE int32_t store_codes(int8_t* codes, const F& a, const F& b) {
    int32x4_t sum = vdupq_n_s32(0);
    for (const F* x : {&a, &b}) {
      int32x4_t i[4];
      for (int j = 0; j < 4; ++j) {
        i[j] = vcvtnq_s32_f32(x->r[j]);
        sum = vaddq_s32(sum, i[j]);
      }
      const int16x8_t low = vcombine_s16(vmovn_s32(i[0]), vmovn_s32(i[1]));
      const int16x8_t high = vcombine_s16(vmovn_s32(i[2]), vmovn_s32(i[3]));
      vst1q_s8(codes, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
      codes += 16;
    }
    return vaddvq_s32(sum);
  }

  // -- integers ----------------------------------------------------------------------------------

  /// 16 int32, or 16 pairs of int16.
  struct Ints {
    int32x4_t r[4];
  };
  KVASIR_INLINE Ints zero_ints() { return broadcast(0); }
  KVASIR_INLINE Ints broadcast(int32_t x) {
    Ints out;
    for (int i = 0; i < 4; ++i) out.r[i] = vdupq_n_s32(x);
    return out;
  }
  KVASIR_INLINE Ints add(const Ints& a, const Ints& b) {
    Ints out;
    for (int i = 0; i < 4; ++i) out.r[i] = vaddq_s32(a.r[i], b.r[i]);
    return out;
  }
  /// a - b * 2^n.
  template <int n>
  KVASIR_INLINE Ints subtract_shifted(const Ints& a, const Ints& b) {
    Ints out;
    for (int i = 0; i < 4; ++i) out.r[i] = vsubq_s32(a.r[i], vshlq_n_s32(b.r[i], n));
    return out;
  }
  KVASIR_INLINE F to_floats(const Ints& x) {
    F out;
    for (int i = 0; i < 4; ++i) out.r[i] = vcvtq_f32_s32(x.r[i]);
    return out;
  }
  KVASIR_INLINE Ints load_ints(const std::byte* p) {
    Ints out;
    for (int i = 0; i < 4; ++i) out.r[i] = vld1q_s32(reinterpret_cast<const int32_t*>(p) + 4 * i);
    return out;
  }
  KVASIR_INLINE void store_ints(std::byte* p, const Ints& x) {
    for (int i = 0; i < 4; ++i) vst1q_s32(reinterpret_cast<int32_t*>(p) + 4 * i, x.r[i]);
  }
  /// 16 pairs of bytes as pairs of int16.
  KVASIR_INLINE Ints load_signed_pairs(const std::byte* p) {
    Ints out;
    for (int i = 0; i < 4; ++i)
      out.r[i] = vreinterpretq_s32_s16(vmovl_s8(vld1_s8(reinterpret_cast<const int8_t*>(p) + 8 * i)));
    return out;
  }
  KVASIR_INLINE Ints load_unsigned_pairs(const std::byte* p) {
    Ints out;
    for (int i = 0; i < 4; ++i)
      out.r[i] = vreinterpretq_s32_u16(vmovl_u8(vld1_u8(reinterpret_cast<const uint8_t*>(p) + 8 * i)));
    return out;
  }
  /// The 4 low (kShift 0) or high (kShift 4) bits of every byte-sized int16.
  template <int kShift>
  KVASIR_INLINE Ints nibble(const Ints& x) {
    Ints out;
    for (int i = 0; i < 4; ++i) {
      uint16x8_t bits = vreinterpretq_u16_s32(x.r[i]);
      if constexpr (kShift > 0) bits = vshrq_n_u16(bits, kShift);
      out.r[i] = vreinterpretq_s32_u16(vandq_u16(bits, vdupq_n_u16(15)));
    }
    return out;
  }
  /// Scales of one sub-block as int32.
  KVASIR_INLINE Ints first_scales(const Ints& pairs) {
    Ints out;
    for (int i = 0; i < 4; ++i) out.r[i] = vshrq_n_s32(vshlq_n_s32(pairs.r[i], 16), 16);
    return out;
  }
  KVASIR_INLINE Ints second_scales(const Ints& pairs) {
    Ints out;
    for (int i = 0; i < 4; ++i) out.r[i] = vshrq_n_s32(pairs.r[i], 16);
    return out;
  }
  /// sum + first of the pair * two[0] + second * two[1].
  KVASIR_INLINE Ints add_pair_products(const Ints& sum, const Ints& pairs, const int16_t* two) {
    const Ints first = first_scales(pairs);
    const Ints second = second_scales(pairs);
    Ints out;
    for (int i = 0; i < 4; ++i)
      out.r[i] = vmlaq_n_s32(vmlaq_n_s32(sum.r[i], first.r[i], two[0]), second.r[i], two[1]);
    return out;
  }
  /// 16 exponents of E8M0, doubled values' scale: 2^(e - 128), subnormal below 2.
  KVASIR_INLINE F load_powers(const std::byte* p) {
    const uint8x16_t bytes = vld1q_u8(reinterpret_cast<const uint8_t*>(p));
    const uint16x8_t halves[2] = {vmovl_u8(vget_low_u8(bytes)), vmovl_u8(vget_high_u8(bytes))};
    F out;
    for (int i = 0; i < 4; ++i) {
      const uint32x4_t e = vmovl_u16(i % 2 == 0 ? vget_low_u16(halves[i / 2]) : vget_high_u16(halves[i / 2]));
      const uint32x4_t normal = vshlq_n_u32(vsubq_u32(e, vdupq_n_u32(1)), 23);
      const uint32x4_t small = vshlq_u32(vdupq_n_u32(0x00200000U), vreinterpretq_s32_u32(e));
      out.r[i] = vreinterpretq_f32_u32(vbslq_u32(vcltq_u32(e, vdupq_n_u32(2)), small, normal));
    }
    return out;
  }

  // -- lines of codes ----------------------------------------------------------------------------

  /// 16 rows x 4 columns of codes; a register holds 4 rows.
  struct Line {
    int8x16_t r[4];
  };
  KVASIR_INLINE Line load_line(const std::byte* p) {
    Line line;
    for (int i = 0; i < 4; ++i) line.r[i] = vld1q_s8(reinterpret_cast<const int8_t*>(p) + 16 * i);
    return line;
  }
  KVASIR_INLINE void store_line(std::byte* p, const Line& x) {
    for (int i = 0; i < 4; ++i) vst1q_s8(reinterpret_cast<int8_t*>(p) + 16 * i, x.r[i]);
  }
  /// kBits bits of every byte from bit kFrom to bit kTo, all other bits 0.
  template <int kFrom, int kTo, int kBits>
  KVASIR_INLINE Line move_bits(const Line& x) {
    Line out;
    for (int i = 0; i < 4; ++i) {
      uint8x16_t bits = vreinterpretq_u8_s8(x.r[i]);
      if constexpr (kFrom > kTo) bits = vshrq_n_u8(bits, kFrom - kTo);
      if constexpr (kFrom < kTo) bits = vshlq_n_u8(bits, kTo - kFrom);
      out.r[i] = vreinterpretq_s8_u8(vandq_u8(bits, vdupq_n_u8(((1 << kBits) - 1) << kTo)));
    }
    return out;
  }
  KVASIR_INLINE Line either(const Line& a, const Line& b) {
    Line out;
    for (int i = 0; i < 4; ++i) out.r[i] = vorrq_s8(a.r[i], b.r[i]);
    return out;
  }
  /// The values that codes 0..15 stand for, plus kBias.
  template <int kBias>
  KVASIR_INLINE Line look_up(const Line& x, const int8_t (&values)[16]) {
    const int8x16_t list = vaddq_s8(vld1q_s8(values), vdupq_n_s8(static_cast<int8_t>(kBias)));
    Line out;
    for (int i = 0; i < 4; ++i) out.r[i] = vqtbl1q_s8(list, vreinterpretq_u8_s8(x.r[i]));
    return out;
  }
};

struct Isa : Base<Isa> {
  static constexpr const char* kName = "neon";
  static constexpr int kSignedBias = 0;  ///< what Dot<Code::s8> wants added to its codes

  /// Four codes, twice: what half a register of weights (2 rows) is multiplied with.
  KVASIR_INLINE int8x8_t four_codes(const int8_t* x) {
    int32_t four;
    __builtin_memcpy(&four, x, 4);
    return vreinterpret_s8_s32(vdup_n_s32(four));
  }

  /// Each int16 lane takes one product of every line: 5 bits 31 * 127 = 3,937, 8 of which are 31,496; 6
  /// bits 8,001, 4: 32,004; signed 8 bits 16,256, 2: 32,512. The four columns of a row meet when the run
  /// is done.
  template <simd::Code kCode>
  struct Dot {
    static constexpr int kRun = kCode == simd::Code::s8 ? 2 : kCode == simd::Code::u6 ? 4 : 8;
    int16x8_t low[4];
    int16x8_t high[4];
    KVASIR_INLINE void start(Dot& dot) {
      for (int i = 0; i < 4; ++i) dot.low[i] = dot.high[i] = vdupq_n_s16(0);
    }
    KVASIR_INLINE void add(Dot& dot, const Line& w, const int8_t* x) {
      const int8x8_t four = four_codes(x);
      for (int i = 0; i < 4; ++i) {
        dot.low[i] = vmlal_s8(dot.low[i], vget_low_s8(w.r[i]), four);
        dot.high[i] = vmlal_s8(dot.high[i], vget_high_s8(w.r[i]), four);
      }
    }
    KVASIR_INLINE Ints widen(const Dot& dot) {
      Ints out;
      for (int i = 0; i < 4; ++i)
        out.r[i] = vpaddq_s32(vpaddlq_s16(dot.low[i]), vpaddlq_s16(dot.high[i]));
      return out;
    }
    KVASIR_INLINE Ints scaled(const Dot& dot, const Ints& scales) {
      Ints out = widen(dot);
      for (int i = 0; i < 4; ++i) out.r[i] = vmulq_s32(out.r[i], scales.r[i]);
      return out;
    }
    KVASIR_INLINE void keep_order(Ints&) {}
  };
};

}  // namespace kvasir::kernels::neon
