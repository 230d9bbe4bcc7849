// How instruction sets read each quantised format: what a product of it is made of, and its lines
// out of a panel. cpu_kernels/formats defines the layouts.
#pragma once

#include <utility>

#include "cpu_kernels/formats/format.h"
#include "cpu_kernels/formats/value_lists.h"
#include "cpu_kernels/kernels.h"
#include "cpu_kernels/simd/lanes.h"

namespace kvasir::kernels::generic {

using simd::Code;

template <int n>
struct Constant {
  static constexpr int value = n;
};

/// use(Constant<0>), use(Constant<1>), ... n times. Folded: a recursion took 12% longer to compile.
template <class Use, int... i>
KVASIR_INLINE void for_each_constant(std::integer_sequence<int, i...>, const Use& use) {
  (use(Constant<i>{}), ...);
}
template <int n, class Use>
KVASIR_INLINE void for_constants(const Use& use) {
  for_each_constant(std::make_integer_sequence<int, n>{}, use);
}

enum class Low { none, shared, each };  ///< a minimum: none; 1 for the whole group; one a sub-block

/// Every number of rows has code of its own, or (rare formats) only some have: each costs 0.15 s of
/// compiling and 4 KB. Without the others, 5 rows run as 4 + 1.
enum class Rows { each, some };

/// What the inner loops need to know of a format; those of one shape share them.
template <Code kCodeOf, int kColumnsOf, int kSubBlocksOf, Low kLowOf, int kOffsetShiftOf,
          Rows kRowsOf = Rows::each>
struct Shape {
  static constexpr Rows kRows = kRowsOf;
  static constexpr Code kCode = kCodeOf;
  static constexpr int kColumns = kColumnsOf;      ///< of a group: 32 or 256
  static constexpr int kSubBlocks = kSubBlocksOf;  ///< 1, 8 or 16
  static constexpr Low kLow = kLowOf;
  /// Codes are the weights' plus 2^this; -1: plus nothing.
  static constexpr int kOffsetShift = kOffsetShiftOf;
  static constexpr bool kWide = kColumns == 256;
  static constexpr int kSlabs = kColumns / 32;
};

/// Signed bytes, biased where the set's dot product wants them unsigned.
template <class V>
constexpr int kSignedShift = V::kSignedBias == 0 ? -1 : 7;

// Lines of a slab of 32 columns, see formats/slabs.h.

/// use(line, Constant<index>) for each of the 8 lines, in order.
template <class V, int kBits>
struct Slab {
  static constexpr int kLow = kBits == 8 ? 8 : kBits >= 4 ? 4 : 2;
  static constexpr int kHigh = kBits - kLow;

  template <class Use>
  KVASIR_INLINE void for_lines(const std::byte* slab, const Use& use) {
    constexpr int kTogether = 8 / kLow;
    if constexpr (kHigh == 0) {
      for_constants<8 / kTogether>([&](auto byte) __attribute__((always_inline)) {
        const auto packed = V::load_line(slab + byte.value * 64);
        for_constants<kTogether>([&](auto i) __attribute__((always_inline)) {
          use(low<i.value>(packed), Constant<byte.value * kTogether + i.value>{});
        });
      });
    } else {
      constexpr int kPerByte = 8 / kHigh;
      for_constants<8 / kPerByte>([&](auto part) __attribute__((always_inline)) {
        const auto highs = V::load_line(slab + 64 * kLow + part.value * 64);
        for_constants<kPerByte / kTogether>([&](auto byte) __attribute__((always_inline)) {
          constexpr int kFirst = part.value * kPerByte + byte.value * kTogether;
          const auto packed = V::load_line(slab + kFirst / kTogether * 64);
          for_constants<kTogether>([&](auto i) __attribute__((always_inline)) {
            constexpr int kLine = kFirst + i.value;
            const auto high = V::template move_bits<kLine % kPerByte * kHigh, kLow, kHigh>(highs);
            use(V::either(low<i.value>(packed), high), Constant<kLine>{});
          });
        });
      });
    }
  }
  template <int i>
  KVASIR_INLINE typename V::Line low(const typename V::Line& packed) {
    if constexpr (kLow == 8) {
      return packed;
    } else {
      return V::template move_bits<i * kLow, 0, kLow>(packed);
    }
  }
};

/// 4-bit codes that stand for values of a list.
template <class V, const int8_t (&kValues)[16], int kBias>
struct ListSlab {
  template <class Use>
  KVASIR_INLINE void for_lines(const std::byte* slab, const Use& use) {
    Slab<V, 4>::for_lines(
        slab, [&](const auto& line, auto i) __attribute__((always_inline)) {
          use(V::template look_up<kBias>(line, kValues), i);
        });
  }
};

/// Signed bytes as V's dot product takes them.
template <class V>
struct SignedSlab {
  template <class Use>
  KVASIR_INLINE void for_lines(const std::byte* slab, const Use& use) {
    for_constants<8>([&](auto i) __attribute__((always_inline)) {
      use(biased(V::load_line(slab + i.value * 64)), i);
    });
  }
  KVASIR_INLINE typename V::Line biased(const typename V::Line& line) {
    if constexpr (V::kSignedBias == 0) {
      return line;
    } else {
      return V::flip_signs(line);
    }
  }
};

// Formats.

/// Bytes of a group's two parts, and lines of the slab at `codes + slab * kSlabBytes`.
template <class V, class ShapeOf, class Lines, int kScaleBytesOf, int kSlabBytesOf>
struct Streamed {
  using Vocabulary = V;
  using Shape = ShapeOf;
  using F = typename V::F;
  using Ints = typename V::Ints;
  static constexpr bool kByTile = false;  ///< a few rows read the panel itself
  static constexpr int64_t kScaleBytes = kScaleBytesOf;
  static constexpr int64_t kSlabBytes = kSlabBytesOf;
  static constexpr int64_t kCodeBytes = kSlabBytes * Shape::kSlabs;

  KVASIR_INLINE F scale(const std::byte* scales) { return V::load_half(scales); }
  KVASIR_INLINE F minimum(const std::byte* scales) { return V::load_half(scales + 32); }
  template <class Use>
  KVASIR_INLINE void for_lines(const std::byte* slab, const Use& use) {
    Lines::for_lines(slab, use);
  }
};

template <class V>
struct Q4_0 : Streamed<V, Shape<Code::u4, 32, 1, Low::none, 3>, Slab<V, 4>, 32, 256> {};
template <class V>
struct Q4_1 : Streamed<V, Shape<Code::u4, 32, 1, Low::shared, -1>, Slab<V, 4>, 64, 256> {};
template <class V>
struct Q5_0 : Streamed<V, Shape<Code::u5, 32, 1, Low::none, 4>, Slab<V, 5>, 32, 320> {};
template <class V>
struct Q5_1
    : Streamed<V, Shape<Code::u5, 32, 1, Low::shared, -1, Rows::some>, Slab<V, 5>, 64, 320> {};
template <class V>
struct Q8_0
    : Streamed<V, Shape<Code::s8, 32, 1, Low::none, kSignedShift<V>>, SignedSlab<V>, 32, 512> {};
template <class V>
struct Iq4Nl : Streamed<V, Shape<Code::s8, 32, 1, Low::none, kSignedShift<V>>,
                        ListSlab<V, formats::kIq4Values, V::kSignedBias>, 32, 256> {};
/// Values of -12 to 12, plus 16.
template <class V>
struct Mxfp4 : Streamed<V, Shape<Code::u5, 32, 1, Low::none, 4>,
                        ListSlab<V, formats::kMxfp4Values, 16>, 16, 256> {
  KVASIR_INLINE typename V::F scale(const std::byte* scales) { return V::load_powers(scales); }
};

template <class V>
struct Q2K
    : Streamed<V, Shape<Code::u4, 256, 16, Low::each, -1, Rows::some>, Slab<V, 2>, 320, 128> {
  KVASIR_INLINE typename V::Ints scale_pair(const std::byte* scales, int64_t pair) {
    return V::template nibble<0>(V::load_unsigned_pairs(scales + 64 + pair * 32));
  }
  KVASIR_INLINE typename V::Ints minimum_pair(const std::byte* scales, int64_t pair) {
    return V::template nibble<4>(V::load_unsigned_pairs(scales + 64 + pair * 32));
  }
};

template <class V, class ShapeOf, class Lines, int kScaleBytesOf, int kSlabBytesOf>
struct SignedScales : Streamed<V, ShapeOf, Lines, kScaleBytesOf, kSlabBytesOf> {
  KVASIR_INLINE typename V::Ints scale_pair(const std::byte* scales, int64_t pair) {
    return V::load_signed_pairs(scales + 32 + pair * 32);
  }
};
template <class V>
struct Q3K
    : SignedScales<V, Shape<Code::u4, 256, 16, Low::none, 2, Rows::some>, Slab<V, 3>, 288, 192> {};
template <class V>
struct Q6K : SignedScales<V, Shape<Code::u6, 256, 16, Low::none, 5>, Slab<V, 6>, 288, 384> {};
template <class V>
struct Iq4Xs : SignedScales<V, Shape<Code::s8, 256, 8, Low::none, kSignedShift<V>>,
                            ListSlab<V, formats::kIq4Values, V::kSignedBias>, 160, 256> {};

template <class V, class ShapeOf, class Lines, int kScaleBytesOf, int kSlabBytesOf>
struct ScalesAndMinimums : Streamed<V, ShapeOf, Lines, kScaleBytesOf, kSlabBytesOf> {
  KVASIR_INLINE typename V::Ints scale_pair(const std::byte* scales, int64_t pair) {
    return V::load_unsigned_pairs(scales + 64 + pair * 32);
  }
  KVASIR_INLINE typename V::Ints minimum_pair(const std::byte* scales, int64_t pair) {
    return V::load_unsigned_pairs(scales + 192 + pair * 32);
  }
};
template <class V>
struct Q4K : ScalesAndMinimums<V, Shape<Code::u4, 256, 8, Low::each, -1>, Slab<V, 4>, 320, 256> {};
template <class V>
struct Q5K : ScalesAndMinimums<V, Shape<Code::u5, 256, 8, Low::each, -1>, Slab<V, 5>, 320, 320> {};

using TernaryShape = Shape<Code::u4, 256, 1, Low::none, 0, Rows::some>;
template <class V>
struct Tq2_0 : Streamed<V, TernaryShape, Slab<V, 2>, 32, 128> {};

/// Formats whose codes come from tables: the definition reads each row, and products are made from
/// the tile.
template <class V, class ShapeOf, WeightFormat kFormatOf>
struct Tabled {
  using Vocabulary = V;
  using Shape = ShapeOf;
  static constexpr bool kByTile = true;
  static constexpr WeightFormat kFormat = kFormatOf;
};
template <class V, int kSubBlocks>
using SignedShape = Shape<Code::s8, 256, kSubBlocks, Low::none, kSignedShift<V>, Rows::some>;
/// Codes of -16 to 15, plus 16.
template <int kSubBlocks>
using SmallShape = Shape<Code::u5, 256, kSubBlocks, Low::none, 4, Rows::some>;

template <class V>
struct Iq2Xxs : Tabled<V, SignedShape<V, 8>, WeightFormat::iq2_xxs> {};
template <class V>
struct Iq2Xs : Tabled<V, SignedShape<V, 16>, WeightFormat::iq2_xs> {};
template <class V>
struct Iq2S : Tabled<V, SignedShape<V, 16>, WeightFormat::iq2_s> {};
template <class V>
struct Iq3Xxs : Tabled<V, SignedShape<V, 8>, WeightFormat::iq3_xxs> {};
template <class V>
struct Iq3S : Tabled<V, SmallShape<8>, WeightFormat::iq3_s> {};
template <class V>
struct Iq1S : Tabled<V, SmallShape<8>, WeightFormat::iq1_s> {};
template <class V>
struct Iq1M : Tabled<V, SmallShape<16>, WeightFormat::iq1_m> {};
template <class V>
struct Tq1_0 : Tabled<V, TernaryShape, WeightFormat::tq1_0> {};

}  // namespace kvasir::kernels::generic
