// The inner loops of quantised products: some rows of activations against groups of 16 weight rows.
#pragma once

#include <type_traits>

#include "cpu_kernels/generic/quantized_groups.h"

namespace kvasir::kernels::generic {

/// The address of row m of kRows rows that lie `stride` apart. Three rows share a base, so that
/// 12 rows need 4 address registers and a stride instead of 12: x86 adds once or twice the stride
/// in the addressing mode. With a pointer a row the loop reloaded 4 of them from the stack for
/// every line.
template <class T, int kRows>
struct RowPointers {
  const T* base[(kRows + 2) / 3];
  int64_t stride;
  KVASIR_INLINE RowPointers make(const T* first, int64_t stride) {
    RowPointers p;
    for (int i = 0; i < (kRows + 2) / 3; ++i) p.base[i] = first + 3 * i * stride;
    p.stride = stride;
    return p;
  }
  KVASIR_INLINE const T* row(const RowPointers& p, int m) {
    return m % 3 == 0 ? p.base[m / 3] : p.base[m / 3] + (m % 3) * p.stride;
  }
  KVASIR_INLINE void advance(RowPointers& p, int64_t n) {
    for (auto& base : p.base) base += n;
  }
};

/// Products of rows with groups of one shape, wherever the groups lie.
template <class Groups>
struct MicroKernel {
  using V = typename Groups::V;
  using Shape = typename Groups::Shape;
  using F = typename V::F;
  using Ints = typename V::Ints;
  using Dot = typename V::template Dot<Shape::kCode>;
  static constexpr bool kScaled = Shape::kSubBlocks > 1;
  static constexpr int kSubLines = kScaled ? 64 / Shape::kSubBlocks : 8;
  static constexpr int kRun = Dot::kRun < kSubLines ? Dot::kRun : kSubLines;

  KVASIR_INLINE const int8_t* codes(const Activations& x) {
    return Shape::kWide ? x.wide_codes : x.codes;
  }
  KVASIR_INLINE auto groups(const Activations& x) {
    if constexpr (Shape::kWide) {
      return x.wide_groups;
    } else {
      return x.groups;
    }
  }
  KVASIR_INLINE int64_t groups_stride(const Activations& x) {
    return Shape::kWide ? x.wide_groups_stride : x.groups_stride;
  }
  KVASIR_INLINE const int16_t* sums_of(const WideActivationGroup& group) {
    return Shape::kSubBlocks == 8 ? group.sums32 : group.sums16;
  }

  /// totals[m] += the scaled sums of one slab's lines. `scales(half)`: of the sub-block of lines
  /// 0..3 or 4..7.
  template <int kRows, bool kFirst, class Codes8, class Scales>
  KVASIR_INLINE void add_slab(const Groups& w, int64_t g, int64_t slab, const Codes8& codes,
                              const Scales& scales, Ints (&totals)[kRows]) {
    Dot dots[kRows];
    Groups::for_lines(
        w, g, slab, [&](const auto& line, auto i) __attribute__((always_inline)) {
          constexpr int kLine = i.value;
          if constexpr (kLine % kRun == 0) {
#pragma GCC unroll 16
            for (int m = 0; m < kRows; ++m) Dot::start(dots[m]);
          }
#pragma GCC unroll 16
          for (int m = 0; m < kRows; ++m)
            Dot::add(dots[m], line, Codes8::row(codes, m) + kLine * 4);
          if constexpr (kLine % kRun == kRun - 1) {
#pragma GCC unroll 16
            for (int m = 0; m < kRows; ++m) {
              Ints part;
              if constexpr (kScaled) {
                part = Dot::scaled(dots[m], scales(Constant<kLine / 4>{}));
              } else {
                part = Dot::widen(dots[m]);
              }
              if constexpr (kFirst && kLine == kRun - 1) {
                totals[m] = part;
              } else {
                totals[m] = V::add(totals[m], part);
                Dot::keep_order(totals[m]);
              }
            }
          }
        });
  }

  /// The integer sums of a group.
  template <int kRows, class Codes8, class GroupRows>
  KVASIR_INLINE void integers(const Groups& w, int64_t g, Codes8& codes, const GroupRows& groups,
                              Ints (&totals)[kRows]) {
    const auto none = [](auto) __attribute__((always_inline)) {
      return V::zero_ints();
    };
    if constexpr (!Shape::kWide) {
      add_slab<kRows, true>(w, g, 0, codes, none, totals);
      Codes8::advance(codes, 32);
    } else if constexpr (!kScaled) {
      add_slab<kRows, true>(w, g, 0, codes, none, totals);
      Codes8::advance(codes, 32);
#pragma GCC unroll 1
      for (int64_t slab = 1; slab < 8; ++slab) {
        add_slab<kRows, false>(w, g, slab, codes, none, totals);
        Codes8::advance(codes, 32);
      }
    } else {
      for (int m = 0; m < kRows; ++m) totals[m] = V::zero_ints();
#pragma GCC unroll 1
      for (int64_t pair = 0; pair < Shape::kSubBlocks / 2; ++pair) {
        const Ints both = Groups::scale_pair(w, g, pair);
        const Ints first = V::first_scales(both);
        const Ints second = V::second_scales(both);
        if constexpr (Shape::kSubBlocks == 8) {
          add_slab<kRows, false>(
              w, g, 2 * pair, codes, [&](auto) __attribute__((always_inline)) { return first; },
              totals);
          Codes8::advance(codes, 32);
          add_slab<kRows, false>(
              w, g, 2 * pair + 1,
              codes, [&](auto) __attribute__((always_inline)) { return second; }, totals);
        } else {
          add_slab<kRows, false>(
              w, g, pair, codes,
              [&](auto half) __attribute__((always_inline)) {
                if constexpr (half.value == 0) {
                  return first;
                } else {
                  return second;
                }
              },
              totals);
        }
        Codes8::advance(codes, 32);
      }
    }
    take_out_offset<kRows>(w, g, groups, totals);
  }

  /// What the codes' offset added to the totals.
  template <int kRows, class GroupRows>
  KVASIR_INLINE void take_out_offset(const Groups& w, int64_t g, const GroupRows& groups,
                                     Ints (&totals)[kRows]) {
    if constexpr (Shape::kOffsetShift >= 0) {
      if constexpr (kScaled) {
        Ints low[kRows];
        pair_products<kRows>(
            groups, [&](int64_t pair) { return Groups::scale_pair(w, g, pair); }, low);
#pragma GCC unroll 16
        for (int m = 0; m < kRows; ++m)
          totals[m] = V::template subtract_shifted<Shape::kOffsetShift>(totals[m], low[m]);
      } else {
#pragma GCC unroll 16
        for (int m = 0; m < kRows; ++m) {
          totals[m] = V::template subtract_shifted<Shape::kOffsetShift>(
              totals[m], V::broadcast(GroupRows::row(groups, m)->sum));
        }
      }
    }
  }

  /// low[m] = sum over sub-blocks of their number in `pairs` and the row's sum of codes.
  template <int kRows, class GroupRows, class Pairs>
  KVASIR_INLINE void pair_products(const GroupRows& groups, const Pairs& pairs,
                                   Ints (&low)[kRows]) {
    for (int m = 0; m < kRows; ++m) low[m] = V::zero_ints();
#pragma GCC unroll 1
    for (int64_t pair = 0; pair < Shape::kSubBlocks / 2; ++pair) {
      const Ints both = pairs(pair);
#pragma GCC unroll 16
      for (int m = 0; m < kRows; ++m)
        low[m] = V::add_pair_products(low[m], both, sums_of(*GroupRows::row(groups, m)) + 2 * pair);
    }
  }

  /// sums[m] takes in a group's integers: one fused multiply-add, and one for the minimum.
  template <int kRows, class GroupRows>
  KVASIR_INLINE void add_group(const Groups& w, int64_t g, const GroupRows& groups,
                               const Ints (&totals)[kRows], F (&sums)[kRows]) {
    const F scale = Groups::scale(w, g);
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m) {
      sums[m] = F::fma(F::multiply(scale, F::broadcast(GroupRows::row(groups, m)->scale)),
                       V::to_floats(totals[m]), sums[m]);
    }
    if constexpr (Shape::kLow == Low::shared) {
      const F minimum = Groups::minimum(w, g);
#pragma GCC unroll 16
      for (int m = 0; m < kRows; ++m)
        sums[m] = F::fma(minimum, F::broadcast(GroupRows::row(groups, m)->scaled_sum), sums[m]);
    }
    if constexpr (Shape::kLow == Low::each) {
      Ints low[kRows];
      pair_products<kRows>(
          groups, [&](int64_t pair) { return Groups::minimum_pair(w, g, pair); }, low);
      const F minimum = Groups::minimum(w, g);
#pragma GCC unroll 16
      for (int m = 0; m < kRows; ++m) {
        sums[m] = F::fma(F::multiply(minimum, F::broadcast(GroupRows::row(groups, m)->scale)),
                         V::to_floats(low[m]), sums[m]);
      }
    }
  }

  /// sums[m] += 16 outputs of rows [row, row + kRows) over groups [first, end).
  template <int kRows>
  KVASIR_INLINE void multiply(const Groups& w, const Activations& x, int64_t row, int64_t first,
                              int64_t end, F (&sums)[kRows]) {
    using Codes8 = RowPointers<int8_t, kRows>;
    using Group = std::remove_const_t<std::remove_pointer_t<decltype(groups(x))>>;
    using GroupRows = RowPointers<Group, kRows>;
    Codes8 codes8 =
        Codes8::make(codes(x) + row * x.codes_stride + first * Shape::kColumns, x.codes_stride);
    GroupRows group_rows =
        GroupRows::make(groups(x) + row * groups_stride(x) + first, groups_stride(x));
    for (int64_t g = first; g < end; ++g) {
      Ints totals[kRows];
      integers<kRows>(w, g, codes8, group_rows, totals);
      add_group<kRows>(w, g, group_rows, totals, sums);
      GroupRows::advance(group_rows, 1);
    }
  }
};

/// Stores 16 outputs of each of kRows rows; the last panel may have fewer.
template <int kRows, class F>
KVASIR_INLINE void write_outputs(const MatmulTask& task, int64_t panel, int64_t row,
                                 const F (&sums)[kRows]) {
  const int64_t n = panel * kPanelRows;
  const int64_t count = task.weights->n_rows - n;
  float* y = task.output + row * task.output_stride + n;
  if (count >= kPanelRows && !task.add_to_output) {
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m) F::store(y + m * task.output_stride, sums[m]);
  } else if (count >= kPanelRows) {
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m) {
      float* at = y + m * task.output_stride;
      F::store(at, F::add(F::load(at), sums[m]));
    }
  } else {
    for (int m = 0; m < kRows; ++m) {
      float* at = y + m * task.output_stride;
      const F sum = task.add_to_output ? F::add(F::load_first(at, count), sums[m]) : sums[m];
      F::store_first(at, sum, count);
    }
  }
}

}  // namespace kvasir::kernels::generic
