// Products of quantised weights and int8 activations: one driver for every format and instruction
// set. quantized_formats.h: what a format is made of; quantized_groups.h: where its groups lie;
// quantized_rows.h: the inner loops.
#pragma once

#include "cpu_kernels/generic/quantized_rows.h"

namespace kvasir::kernels::generic {

/// Numbers of rows that have code of their own.
template <Rows kRows>
constexpr bool has_code(int n) {
  return kRows == Rows::each || n == 1 || n == 2 || n == 4 || n == 8 || n == 12;
}

/// use(Constant<rows>, row) with the largest number of rows, at most n and kMost, that has code.
/// Returns it.
template <int kMost, Rows kRows, class Use>
KVASIR_INLINE int64_t use_largest(int64_t n, int64_t row, const Use& use) {
  if constexpr (has_code<kRows>(kMost)) {
    if (n >= kMost) {
      use(Constant<kMost>{}, row);
      return kMost;
    }
  }
  if constexpr (kMost > 1) return use_largest<kMost - 1, kRows>(n, row, use);
  return 1;
}

/// Calls use(Constant<n>, row) for passes over rows [first, end) of at most kMost, as equal as they
/// can be: 13 rows as 7 + 6 run 15% faster than as 12 + 1.
template <int kMost, Rows kRows, class Use>
KVASIR_INLINE void for_passes(int64_t first, int64_t end, const Use& use) {
  for (int64_t row = first; row < end;) {
    const int64_t n_passes = (end - row + kMost - 1) / kMost;
    row += use_largest<kMost, kRows>((end - row + n_passes - 1) / n_passes, row, use);
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
    multiply_rows_from(task, scratch, panel, block, block, block_end, first, end);
  }
  /// Rows [begin, block_end) of the block that starts at `block`.
  static void multiply_rows_from(const MatmulTask& task, TileScratch& scratch, int64_t panel,
                                 int64_t block, int64_t begin, int64_t block_end, int64_t first,
                                 int64_t end) {
    for_passes<V::kQuantizedRows, Shape::kRows>(begin, block_end, [&](auto rows, int64_t row) {
      multiply<decltype(rows)::value>(task, scratch, panel, block, row, first, end);
    });
  }
};

/// Unpacks groups [first, end) of a panel into the tile: in registers, or row by row from the
/// definition.
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
        Groups::for_lines(
            w, g, slab, [&](const auto& line, auto i) __attribute__((always_inline)) {
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
    constexpr uint32_t kBias =
        Shape::kOffsetShift < 0 ? 0U : (1U << (Shape::kOffsetShift & 7)) * 0x01010101U;
    return ((word & 0x7F7F7F7FU) + (kBias & 0x7F7F7F7FU)) ^ ((word ^ kBias) & 0x80808080U);
  }

  static void from_rows(const MatmulTask& task, int64_t panel, int64_t first, int64_t end,
                        TileScratch& scratch) {
    const formats::Format& format = *formats::find_format(Format::kFormat);
    const PackedMatrix& m = *task.weights;
    const std::byte* scales = m.panels + static_cast<size_t>(panel) * m.panel_bytes;
    const std::byte* codes =
        scales + formats::scales_part_bytes(format, m.n_columns / Shape::kColumns);
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

/// `Products`: what multiplies rows with a tile.
template <class Format, template <class, class> class Products = TileProducts>
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
      for_passes<V::kQuantizedRows, Shape::kRows>(
          0, task.input->n_rows,
          [&](auto rows, int64_t row) { stream_panel<decltype(rows)::value>(task, panel, row); });
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
          const int64_t end =
              n_groups - first < kTileGroupsHere ? n_groups : first + kTileGroupsHere;
          Unpack<Format>::run(task, panel, first, end, scratch);
          Products<V, Shape>::multiply_rows(task, scratch, panel, block, block_end, first, end);
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

/// Gives the table MatmulOf<Format, its place>::run of every quantised format: the one list of them.
template <class V, template <class, WeightFormat> class MatmulOf>
constexpr void put_quantized(KernelTable& table) {
  const auto put = [&table]<class Format, WeightFormat kFormat>() {
    table.matmul[static_cast<int>(kFormat)] = MatmulOf<Format, kFormat>::run;
  };
  put.template operator()<Q4_0<V>, WeightFormat::q4_0>();
  put.template operator()<Q4_1<V>, WeightFormat::q4_1>();
  put.template operator()<Q5_0<V>, WeightFormat::q5_0>();
  put.template operator()<Q5_1<V>, WeightFormat::q5_1>();
  put.template operator()<Q8_0<V>, WeightFormat::q8_0>();
  put.template operator()<Iq4Nl<V>, WeightFormat::iq4_nl>();
  put.template operator()<Mxfp4<V>, WeightFormat::mxfp4>();
  put.template operator()<Q2K<V>, WeightFormat::q2_k>();
  put.template operator()<Q3K<V>, WeightFormat::q3_k>();
  put.template operator()<Q4K<V>, WeightFormat::q4_k>();
  put.template operator()<Q5K<V>, WeightFormat::q5_k>();
  put.template operator()<Q6K<V>, WeightFormat::q6_k>();
  put.template operator()<Iq4Xs<V>, WeightFormat::iq4_xs>();
  put.template operator()<Iq2Xxs<V>, WeightFormat::iq2_xxs>();
  put.template operator()<Iq2Xs<V>, WeightFormat::iq2_xs>();
  put.template operator()<Iq2S<V>, WeightFormat::iq2_s>();
  put.template operator()<Iq3Xxs<V>, WeightFormat::iq3_xxs>();
  put.template operator()<Iq3S<V>, WeightFormat::iq3_s>();
  put.template operator()<Iq1S<V>, WeightFormat::iq1_s>();
  put.template operator()<Iq1M<V>, WeightFormat::iq1_m>();
  put.template operator()<Tq1_0<V>, WeightFormat::tq1_0>();
  put.template operator()<Tq2_0<V>, WeightFormat::tq2_0>();
}

}  // namespace kvasir::kernels::generic
