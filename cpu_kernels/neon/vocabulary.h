// AArch64 Advanced SIMD without the dot product extension: 16 lanes are four registers.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "cpu_kernels/simd/lanes.h"

namespace kvasir::kernels::neon {

struct Isa {
  using Arch = xsimd::neon64;
  using F = simd::Floats<Isa>;
  using Batch = F::Batch;
  static constexpr const char* kName = "neon";

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

  // -- dot products of codes -------------------------------------------------------------------

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
  KVASIR_INLINE Line low_nibbles(const Line& x) {
    Line out;
    for (int i = 0; i < 4; ++i) out.r[i] = vandq_s8(x.r[i], vdupq_n_s8(15));
    return out;
  }
  KVASIR_INLINE Line high_nibbles(const Line& x) {
    Line out;
    for (int i = 0; i < 4; ++i)
      out.r[i] = vreinterpretq_s8_u8(vshrq_n_u8(vreinterpretq_u8_s8(x.r[i]), 4));
    return out;
  }
  /// Four codes, twice: what half a register of weights (2 rows) is multiplied with.
  KVASIR_INLINE int8x8_t four_codes(const int8_t* x) {
    int32_t four;
    __builtin_memcpy(&four, x, 4);
    return vreinterpret_s8_s32(vdup_n_s32(four));
  }

  /// Codes 0..15: a product is at most 15 * 127 = 1,905 and each int16 lane takes one of every
  /// line, 8 * 1,905 = 15,240 a group; the four columns of a row meet when the group is done.
  struct DotUnsigned4 {
    int16x8_t low[4];
    int16x8_t high[4];
    KVASIR_INLINE void start(DotUnsigned4& dot, int32_t) {
      for (int i = 0; i < 4; ++i) dot.low[i] = dot.high[i] = vdupq_n_s16(0);
    }
    KVASIR_INLINE void add(DotUnsigned4& dot, const Line& w, const int8_t* x) {
      const int8x8_t four = four_codes(x);
      for (int i = 0; i < 4; ++i) {
        dot.low[i] = vmlal_s8(dot.low[i], vget_low_s8(w.r[i]), four);
        dot.high[i] = vmlal_s8(dot.high[i], vget_high_s8(w.r[i]), four);
      }
    }
    KVASIR_INLINE F finish(const DotUnsigned4& dot) {
      F out;
      for (int i = 0; i < 4; ++i) {
        const int32x4_t rows = vpaddq_s32(vpaddlq_s16(dot.low[i]), vpaddlq_s16(dot.high[i]));
        out.r[i] = vcvtq_f32_s32(rows);
      }
      return out;
    }
  };

  /// Codes -128..127: a product is at most 128 * 127 = 16,256, which fits int16; neighbours are
  /// added in int32 at once.
  struct DotSigned8 {
    int32x4_t low[4];
    int32x4_t high[4];
    KVASIR_INLINE void start(DotSigned8& dot, int32_t) {
      for (int i = 0; i < 4; ++i) dot.low[i] = dot.high[i] = vdupq_n_s32(0);
    }
    KVASIR_INLINE void add(DotSigned8& dot, const Line& w, const int8_t* x) {
      const int8x8_t four = four_codes(x);
      for (int i = 0; i < 4; ++i) {
        dot.low[i] = vpadalq_s16(dot.low[i], vmull_s8(vget_low_s8(w.r[i]), four));
        dot.high[i] = vpadalq_s16(dot.high[i], vmull_s8(vget_high_s8(w.r[i]), four));
      }
    }
    KVASIR_INLINE F finish(const DotSigned8& dot) {
      F out;
      for (int i = 0; i < 4; ++i) out.r[i] = vcvtq_f32_s32(vpaddq_s32(dot.low[i], dot.high[i]));
      return out;
    }
  };
  KVASIR_INLINE Line prepare_signed(const Line& w) { return w; }
};

}  // namespace kvasir::kernels::neon
