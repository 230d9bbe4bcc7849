// Products of quantised weights and int8 activations: one driver, one micro-kernel, for every format
// and instruction set.
#pragma once

#include "cpu_kernels/generic/quantized_formats.h"
#include "cpu_kernels/kernels.h"
#include "cpu_kernels/simd/lanes.h"

namespace kvasir::kernels::generic {

// A tile of 16 rows x 1,024 columns takes 16 KB as bytes and 4 to 5 KB of scales: it stays in L1 while every
// row of the batch passes by. 128 rows of 1,024 activation codes are 128 KB of L2.
enum : int64_t { kTileColumns = 1024, kTileGroups = 32, kTileWideGroups = 4, kBlockRows = 128 };

struct TileScratch {
  alignas(64) std::byte lines[kTileColumns * 16];
  alignas(64) float scales[kTileGroups * 32];                      ///< [group][16 d, 16 m]
  alignas(64) std::byte scale_pairs[kTileWideGroups * 8 * 64];     ///< [group][pair]
  alignas(64) std::byte minimum_pairs[kTileWideGroups * 8 * 64];
  alignas(64) float sums[kBlockRows * 16];                         ///< [row][16]
};
static_assert(sizeof(TileScratch) <= kMatmulScratchBytes);

/// Groups of one panel straight from memory.
template <class Format>
struct PackedGroups {
  using V = typename Format::Vocabulary;
  using Shape = typename Format::Shape;
  // One row, 576 columns, one thread of a Zen 5, GB/s of Q4_1 and Q8_0 as here; 8,192 bytes ahead;
  // with only the codes fetched, 4,096 bytes ahead, which left the next panel's scales out:
  //   weights from L3, VNNI   89, 69; 100, 60; 86, 49        AVX2   70, 74; 70, 62; 65, 39
  //   from memory (plain reads: 37), VNNI   61; 55; 34; and 20 without any
  static constexpr int64_t kPrefetchBytes = 16384;
  static constexpr int64_t kGroupBytes = Format::kScaleBytes + Format::kCodeBytes;

  const std::byte* panel;
  const std::byte* codes;
  const std::byte* end;  ///< of the task's last panel: what follows is another thread's

  KVASIR_INLINE const std::byte* scales(const PackedGroups& w, int64_t g) {
    return w.panel + g * Format::kScaleBytes;
  }
  KVASIR_INLINE typename V::F scale(const PackedGroups& w, int64_t g) {
    return Format::scale(scales(w, g));
  }
  KVASIR_INLINE typename V::F minimum(const PackedGroups& w, int64_t g) {
    return Format::minimum(scales(w, g));
  }
  KVASIR_INLINE typename V::Ints scale_pair(const PackedGroups& w, int64_t g, int64_t pair) {
    return Format::scale_pair(scales(w, g), pair);
  }
  KVASIR_INLINE typename V::Ints minimum_pair(const PackedGroups& w, int64_t g, int64_t pair) {
    return Format::minimum_pair(scales(w, g), pair);
  }
  template <class Use>
  KVASIR_INLINE void for_lines(const PackedGroups& w, int64_t g, int64_t slab, const Use& use) {
    // Evenly through the panel, scales and codes alike, though a group reads from both.
    constexpr int64_t kPart = kGroupBytes / Shape::kSlabs;
    const std::byte* ahead = w.panel + g * kGroupBytes + slab * kPart + kPrefetchBytes;
    if (ahead < w.end) {
      for (int64_t i = 0; i < kPart; i += 64) __builtin_prefetch(ahead + i);
    }
    Format::for_lines(w.codes + g * Format::kCodeBytes + slab * Format::kSlabBytes, use);
  }
};

/// The same from the unpacked tile, for all formats of one shape.
template <class VocabularyOf, class ShapeOf>
struct TileGroups {
  using V = VocabularyOf;
  using Shape = ShapeOf;
  const TileScratch* scratch;
  int64_t first_group;

  KVASIR_INLINE typename V::F scale(const TileGroups& w, int64_t g) {
    return V::F::load(w.scratch->scales + (g - w.first_group) * 32);
  }
  KVASIR_INLINE typename V::F minimum(const TileGroups& w, int64_t g) {
    return V::F::load(w.scratch->scales + (g - w.first_group) * 32 + 16);
  }
  KVASIR_INLINE typename V::Ints scale_pair(const TileGroups& w, int64_t g, int64_t pair) {
    return V::load_ints(w.scratch->scale_pairs + ((g - w.first_group) * 8 + pair) * 64);
  }
  KVASIR_INLINE typename V::Ints minimum_pair(const TileGroups& w, int64_t g, int64_t pair) {
    return V::load_ints(w.scratch->minimum_pairs + ((g - w.first_group) * 8 + pair) * 64);
  }
  template <class Use>
  KVASIR_INLINE void for_lines(const TileGroups& w, int64_t g, int64_t slab, const Use& use) {
    const std::byte* at =
        w.scratch->lines + ((g - w.first_group) * Shape::kSlabs + slab) * 512;
    for_constants<8>([&](auto i) __attribute__((always_inline)) {
      use(V::load_line(at + i.value * 64), i);
    });
  }
};

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

  template <class T>
  static constexpr bool kIsWide = sizeof(T) == sizeof(WideActivationGroup);

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

  /// totals[m] += the scaled sums of one slab's lines. `scales(half)`: of the sub-block of lines 0..3 or 4..7.
  template <int kRows, bool kFirst, class Codes8, class Scales>
  KVASIR_INLINE void add_slab(const Groups& w, int64_t g, int64_t slab, const Codes8& codes,
                              const Scales& scales, Ints (&totals)[kRows]) {
    Dot dots[kRows];
    Groups::for_lines(w, g, slab, [&](const auto& line, auto i) __attribute__((always_inline)) {
      constexpr int kLine = i.value;
      if constexpr (kLine % kRun == 0) {
#pragma GCC unroll 16
        for (int m = 0; m < kRows; ++m) Dot::start(dots[m]);
      }
#pragma GCC unroll 16
      for (int m = 0; m < kRows; ++m) Dot::add(dots[m], line, Codes8::row(codes, m) + kLine * 4);
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

  /// The integer sums of a group; what the codes' offset added is taken out.
  template <int kRows, class Codes8, class GroupRows>
  KVASIR_INLINE void integers(const Groups& w, int64_t g, Codes8& codes, const GroupRows& groups,
                              Ints (&totals)[kRows]) {
    const auto none = [](auto) __attribute__((always_inline)) { return V::zero_ints(); };
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
          add_slab<kRows, false>(w, g, 2 * pair, codes, [&](auto) __attribute__((always_inline)) { return first; }, totals);
          Codes8::advance(codes, 32);
          add_slab<kRows, false>(w, g, 2 * pair + 1, codes, [&](auto) __attribute__((always_inline)) { return second; }, totals);
        } else {
          add_slab<kRows, false>(w, g, pair, codes,
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
    if constexpr (Shape::kOffsetShift >= 0) {
      if constexpr (kScaled) {
        Ints low[kRows];
        pair_products<kRows>(groups, [&](int64_t pair) { return Groups::scale_pair(w, g, pair); }, low);
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

  /// sums[m] += 16 outputs of rows [row, row + kRows) over groups [first, end).
  template <int kRows>
  KVASIR_INLINE void multiply(const Groups& w, const Activations& x, int64_t row, int64_t first,
                              int64_t end, F (&sums)[kRows]) {
    using Codes8 = RowPointers<int8_t, kRows>;
    using Group = std::remove_const_t<std::remove_pointer_t<decltype(groups(x))>>;
    using GroupRows = RowPointers<Group, kRows>;
    Codes8 codes8 = Codes8::make(codes(x) + row * x.codes_stride + first * Shape::kColumns, x.codes_stride);
    GroupRows group_rows =
        GroupRows::make(groups(x) + row * groups_stride(x) + first, groups_stride(x));
    for (int64_t g = first; g < end; ++g) {
      Ints totals[kRows];
      integers<kRows>(w, g, codes8, group_rows, totals);
      const F scale = Groups::scale(w, g);
#pragma GCC unroll 16
      for (int m = 0; m < kRows; ++m) {
        sums[m] = F::fma(F::multiply(scale, F::broadcast(GroupRows::row(group_rows, m)->scale)),
                         V::to_floats(totals[m]), sums[m]);
      }
      if constexpr (Shape::kLow == Low::shared) {
        const F minimum = Groups::minimum(w, g);
#pragma GCC unroll 16
        for (int m = 0; m < kRows; ++m) {
          sums[m] = F::fma(minimum, F::broadcast(GroupRows::row(group_rows, m)->scaled_sum), sums[m]);
        }
      }
      if constexpr (Shape::kLow == Low::each) {
        Ints low[kRows];
        pair_products<kRows>(group_rows, [&](int64_t pair) { return Groups::minimum_pair(w, g, pair); }, low);
        const F minimum = Groups::minimum(w, g);
#pragma GCC unroll 16
        for (int m = 0; m < kRows; ++m) {
          sums[m] = F::fma(F::multiply(minimum, F::broadcast(GroupRows::row(group_rows, m)->scale)),
                           V::to_floats(low[m]), sums[m]);
        }
      }
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

template <class Format>
KVASIR_INLINE PackedGroups<Format> packed_groups(const MatmulTask& task, int64_t panel) {
  const PackedMatrix& w = *task.weights;
  const std::byte* at = w.panels + static_cast<size_t>(panel) * w.panel_bytes;
  const int64_t n_groups = w.n_columns / Format::Shape::kColumns;
  return {at, at + (n_groups * Format::kScaleBytes + 63) / 64 * 64,
          w.panels + static_cast<size_t>(task.end_panel) * w.panel_bytes};
}

/// Calls use(Constant<n>, row) for passes over rows [first, end) of at most kMost, as equal as they can
/// be: 13 rows as 7 + 6 run 15% faster than as 12 + 1.
template <int kRows, class Use>
KVASIR_INLINE void with_constant(int64_t n, int64_t row, const Use& use) {
  if constexpr (kRows > 0) {
    if (n == kRows) {
      use(Constant<kRows>{}, row);
    } else {
      with_constant<kRows - 1>(n, row, use);
    }
  }
}
template <int kMost, class Use>
KVASIR_INLINE void for_passes(int64_t first, int64_t end, const Use& use) {
  for (int64_t row = first; row < end;) {
    const int64_t n_passes = (end - row + kMost - 1) / kMost;
    const int64_t n = (end - row + n_passes - 1) / n_passes;
    with_constant<kMost>(n, row, use);
    row += n;
  }
}

/// Products with an unpacked tile: shared by the formats of one shape.
template <class V, class Shape>
struct TileProducts {
  using F = typename V::F;
  using Groups = TileGroups<V, Shape>;

  /// Rows [row, row + kRows) of a block against the tile; sums carried in scratch between tiles.
  template <int kRows>
  [[gnu::noinline]] static void multiply(const MatmulTask& task, TileScratch& scratch,
                                         int64_t panel, int64_t block, int64_t row, int64_t first,
                                         int64_t end) {
    F sums[kRows];
    float* carried = scratch.sums + (row - block) * 16;
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m)
      sums[m] = first == 0 ? F::broadcast(0) : F::load(carried + m * 16);
    MicroKernel<Groups>::template multiply<kRows>(Groups{&scratch, first}, *task.input, row, first,
                                                  end, sums);
    if (end == task.weights->n_columns / Shape::kColumns) {
      write_outputs<kRows>(task, panel, row, sums);
    } else {
#pragma GCC unroll 16
      for (int m = 0; m < kRows; ++m) F::store(carried + m * 16, sums[m]);
    }
  }

  static void multiply_rows(const MatmulTask& task, TileScratch& scratch, int64_t panel,
                            int64_t block, int64_t block_end, int64_t first, int64_t end) {
    for_passes<V::kQuantizedRows>(block, block_end, [&](auto rows, int64_t row) {
      multiply<decltype(rows)::value>(task, scratch, panel, block, row, first, end);
    });
  }
};

/// Unpacks groups [first, end) of a panel into the tile: in registers, or row by row from the definition.
template <class Format>
struct Unpack {
  using V = typename Format::Vocabulary;
  using Shape = typename Format::Shape;

  [[gnu::noinline]] static void run(const MatmulTask& task, int64_t panel, int64_t first,
                                    int64_t end, TileScratch& scratch) {
    if constexpr (Format::kByTile) {
      from_rows(task, panel, first, end, scratch);
    } else {
      from_lines(task, panel, first, end, scratch);
    }
  }

  static void from_lines(const MatmulTask& task, int64_t panel, int64_t first, int64_t end,
                         TileScratch& scratch) {
    using Groups = PackedGroups<Format>;
    const Groups w = packed_groups<Format>(task, panel);
    for (int64_t g = first; g < end; ++g) {
      for (int64_t slab = 0; slab < Shape::kSlabs; ++slab) {
        std::byte* lines = scratch.lines + ((g - first) * Shape::kSlabs + slab) * 512;
        Groups::for_lines(w, g, slab, [&](const auto& line, auto i) __attribute__((always_inline)) {
          V::store_line(lines + i.value * 64, line);
        });
      }
      V::F::store(scratch.scales + (g - first) * 32, Groups::scale(w, g));
      if constexpr (Shape::kLow != Low::none)
        V::F::store(scratch.scales + (g - first) * 32 + 16, Groups::minimum(w, g));
      if constexpr (Shape::kSubBlocks > 1) {
        for (int64_t pair = 0; pair < Shape::kSubBlocks / 2; ++pair) {
          const int64_t at = ((g - first) * 8 + pair) * 64;
          V::store_ints(scratch.scale_pairs + at, Groups::scale_pair(w, g, pair));
          if constexpr (Shape::kLow == Low::each)
            V::store_ints(scratch.minimum_pairs + at, Groups::minimum_pair(w, g, pair));
        }
      }
    }
  }

  /// Four signed codes as Dot takes them.
  KVASIR_INLINE uint32_t biased(uint32_t word) {
    constexpr uint32_t kBias = Shape::kOffsetShift < 0 ? 0U : (1U << (Shape::kOffsetShift & 7)) * 0x01010101U;
    return ((word & 0x7F7F7F7FU) + (kBias & 0x7F7F7F7FU)) ^ ((word ^ kBias) & 0x80808080U);
  }

  static void from_rows(const MatmulTask& task, int64_t panel, int64_t first, int64_t end,
                        TileScratch& scratch) {
    const formats::Format& format = *formats::find_format(Format::kFormat);
    const PackedMatrix& m = *task.weights;
    const std::byte* scales = m.panels + static_cast<size_t>(panel) * m.panel_bytes;
    const std::byte* codes = scales + formats::scales_part_bytes(format, m.n_columns / Shape::kColumns);
    for (int64_t g = first; g < end; ++g) {
      for (int64_t r = 0; r < kPanelRows; ++r) {
        formats::RowGroup row;
        format.read(scales + g * format.scale_bytes, codes + g * format.code_bytes, r, row);
        scratch.scales[(g - first) * 32 + r] = row.d;
        std::byte* lines = scratch.lines + (g - first) * Shape::kColumns * 16 + r * 4;
        for (int64_t line = 0; line < Shape::kColumns / 4; ++line) {
          uint32_t word;
          __builtin_memcpy(&word, row.codes + line * 4, 4);
          word = biased(word);
          __builtin_memcpy(lines + line * 64, &word, 4);
        }
        if constexpr (Shape::kSubBlocks > 1) {
          for (int64_t pair = 0; pair < Shape::kSubBlocks / 2; ++pair) {
            std::byte* at = scratch.scale_pairs + ((g - first) * 8 + pair) * 64 + r * 4;
            __builtin_memcpy(at, row.scales + 2 * pair, 4);
          }
        }
      }
    }
  }
};

template <class Format>
struct QuantizedMatmul {
  using V = typename Format::Vocabulary;
  using Shape = typename Format::Shape;
  using F = typename V::F;
  static constexpr int64_t kTileGroupsHere = kTileColumns / Shape::kColumns;

  /// Rows [row, row + kRows) against one panel, unpacked in registers.
  template <int kRows>
  [[gnu::noinline]] static void stream_panel(const MatmulTask& task, int64_t panel, int64_t row) {
    F sums[kRows];
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m) sums[m] = F::broadcast(0);
    MicroKernel<PackedGroups<Format>>::template multiply<kRows>(
        packed_groups<Format>(task, panel), *task.input, row, 0,
        task.weights->n_columns / Shape::kColumns, sums);
    write_outputs<kRows>(task, panel, row, sums);
  }

  /// Few rows: no tile, each panel is read from memory once and at most another time from L1.
  static void stream(const MatmulTask& task) {
    for (int64_t panel = task.first_panel; panel < task.end_panel; ++panel) {
      for_passes<V::kQuantizedRows>(0, task.input->n_rows, [&](auto rows, int64_t row) {
        stream_panel<decltype(rows)::value>(task, panel, row);
      });
    }
  }

  static void blocked(const MatmulTask& task) {
    auto& scratch = *reinterpret_cast<TileScratch*>(task.scratch);
    const int64_t n_groups = task.weights->n_columns / Shape::kColumns;
    const int64_t n_rows = task.input->n_rows;
    for (int64_t block = 0; block < n_rows; block += kBlockRows) {
      const int64_t block_end = n_rows - block < kBlockRows ? n_rows : block + kBlockRows;
      for (int64_t panel = task.first_panel; panel < task.end_panel; ++panel) {
        for (int64_t first = 0; first < n_groups; first += kTileGroupsHere) {
          const int64_t end = n_groups - first < kTileGroupsHere ? n_groups : first + kTileGroupsHere;
          Unpack<Format>::run(task, panel, first, end, scratch);
          TileProducts<V, Shape>::multiply_rows(task, scratch, panel, block, block_end, first, end);
        }
      }
    }
  }

  static void run(const MatmulTask& task) {
    if constexpr (Format::kByTile) {
      blocked(task);
    } else if (task.input->n_rows <= V::kStreamedRows) {
      stream(task);
    } else {
      blocked(task);
    }
  }
};

}  // namespace kvasir::kernels::generic
