// AArch64 with the dot product extension: sdot adds four products of signed bytes to each int32
// lane.
#pragma once

#include "cpu_kernels/neon/vocabulary.h"

namespace kvasir::kernels::neondotprod {

struct Isa : neon::Base<Isa> {
  static constexpr const char* kName = "neon-dotprod";
  static constexpr int kSignedBias = 0;
  // 4 rows x 4 sums and 4 x 4 totals or floats are 32 registers; the weights need 4 more. Not
  // measured.
  static constexpr int kQuantizedRows = 3;

  /// Exact in int32 for any number of lines. Codes of at most 6 bits are signed bytes too.
  template <simd::Code>
  struct Dot {
    static constexpr int kRun = 8;
    int32x4_t sum[4];
    KVASIR_INLINE void start(Dot& dot) {
      for (int i = 0; i < 4; ++i) dot.sum[i] = vdupq_n_s32(0);
    }
    KVASIR_INLINE void add(Dot& dot, const Line& w, const int8_t* x) {
      int32_t word;
      __builtin_memcpy(&word, x, 4);
      const int8x16_t four = vreinterpretq_s8_s32(vdupq_n_s32(word));
      for (int i = 0; i < 4; ++i) dot.sum[i] = vdotq_s32(dot.sum[i], w.r[i], four);
    }
    KVASIR_INLINE Ints widen(const Dot& dot) {
      return {{dot.sum[0], dot.sum[1], dot.sum[2], dot.sum[3]}};
    }
    KVASIR_INLINE Ints scaled(const Dot& dot, const Ints& scales) {
      Ints out;
      for (int i = 0; i < 4; ++i) out.r[i] = vmulq_s32(dot.sum[i], scales.r[i]);
      return out;
    }
    KVASIR_INLINE void keep_order(Ints&) {}
  };
};

}  // namespace kvasir::kernels::neondotprod
