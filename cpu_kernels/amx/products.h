// Products with an unpacked tile on AMX: 16 rows of activations at a time, what is left on AVX-512
// VNNI.
#pragma once

#include "cpu_kernels/amx/vocabulary.h"
#include "cpu_kernels/generic/matmul_quantized.h"

namespace kvasir::kernels::avx512vnni {
extern const KernelTable kTable;
}

namespace kvasir::kernels::amx {

using generic::Low;
using generic::Rows;

/// The same shape with code for few numbers of rows: they only end a batch.
template <class S>
using RareShape =
    generic::Shape<S::kCode, S::kColumns, S::kSubBlocks, S::kLow, S::kOffsetShift, Rows::some>;

template <class V, class Shape>
struct Products {
  using F = typename V::F;
  using Ints = typename V::Ints;
  using Groups = generic::TileGroups<V, Shape>;
  using Micro = generic::MicroKernel<Groups>;
  using Tiles = typename V::Tiles;
  static constexpr int kRows = 16;
  static constexpr int kLines =
      Micro::kSubLines;  ///< of a product of tiles: one sub-block, or a slab

  /// totals[m] of one group.
  template <class GroupRows>
  KVASIR_INLINE void integers(const Groups& w, int64_t g, const int8_t* codes, int64_t stride,
                              const GroupRows& groups, Ints (&totals)[kRows]) {
    alignas(64) int32_t sums[kRows * 16];
    const std::byte* lines = w.scratch->lines + (g - w.first_group) * Shape::kColumns * 16;
    constexpr int kProducts = Shape::kColumns / (4 * kLines);
    for (int m = 0; m < kRows; ++m) totals[m] = V::zero_ints();
#pragma GCC unroll 1
    for (int i = 0; i < kProducts; ++i) {
      Tiles::multiply(codes + i * kLines * 4, stride, lines + i * kLines * 64, sums);
      if constexpr (Micro::kScaled) {
        const Ints pair = Groups::scale_pair(w, g, i / 2);
        const Ints scales = i % 2 == 0 ? V::first_scales(pair) : V::second_scales(pair);
#pragma GCC unroll 16
        for (int m = 0; m < kRows; ++m) {
          const Ints part = V::load_ints(reinterpret_cast<const std::byte*>(sums + m * 16));
          totals[m] = V::add(totals[m], V::multiply(part, scales));
        }
      } else {
#pragma GCC unroll 16
        for (int m = 0; m < kRows; ++m) {
          totals[m] =
              V::add(totals[m], V::load_ints(reinterpret_cast<const std::byte*>(sums + m * 16)));
        }
      }
    }
    Micro::template take_out_offset<kRows>(w, g, groups, totals);
  }

  /// Rows [row, row + 16) of a block; sums carried in scratch between tiles.
  [[gnu::noinline]] static void multiply_16(const MatmulTask& task, generic::TileScratch& scratch,
                                            int64_t panel, int64_t block, int64_t row,
                                            int64_t first, int64_t end) {
    const Activations& x = *task.input;
    using Group = std::remove_const_t<std::remove_pointer_t<decltype(Micro::groups(x))>>;
    using GroupRows = generic::RowPointers<Group, kRows>;
    F sums[kRows];
    float* carried = scratch.sums + (row - block) * 16;
    for (int m = 0; m < kRows; ++m)
      sums[m] = first == 0 ? F::broadcast(0) : F::load(carried + m * 16);
    const Groups w{&scratch, first};
    const int8_t* codes = Micro::codes(x) + row * x.codes_stride + first * Shape::kColumns;
    GroupRows groups = GroupRows::make(Micro::groups(x) + row * Micro::groups_stride(x) + first,
                                       Micro::groups_stride(x));
    for (int64_t g = first; g < end; ++g) {
      Ints totals[kRows];
      integers(w, g, codes, x.codes_stride, groups, totals);
      Micro::template add_group<kRows>(w, g, groups, totals, sums);
      codes += Shape::kColumns;
      GroupRows::advance(groups, 1);
    }
    if (end == task.weights->n_columns / Shape::kColumns) {
      generic::write_outputs<kRows>(task, panel, row, sums);
    } else {
      for (int m = 0; m < kRows; ++m) F::store(carried + m * 16, sums[m]);
    }
  }

  static void multiply_rows(const MatmulTask& task, generic::TileScratch& scratch, int64_t panel,
                            int64_t block, int64_t block_end, int64_t first, int64_t end) {
    int64_t row = block;
    if (row + kRows <= block_end) {
      Tiles::configure(kLines);
      for (; row + kRows <= block_end; row += kRows)
        multiply_16(task, scratch, panel, block, row, first, end);
      Tiles::release();
    }
    if (row < block_end) {
      // The sums of these rows lie where the whole block's do.
      generic::TileProducts<V, RareShape<Shape>>::multiply_rows_from(task, scratch, panel, block,
                                                                     row, block_end, first, end);
    }
  }
};

/// Batches of 16 rows and more; smaller ones run as on AVX-512 VNNI.
template <class Format, WeightFormat kFormat>
struct Matmul {
  static void run(const MatmulTask& task) {
    if (task.input->n_rows < 16) {
      avx512vnni::kTable.matmul[static_cast<int>(kFormat)](task);
    } else {
      generic::QuantizedMatmul<Format, Products>::blocked(task);
    }
  }
};

/// Gives the table the products of every quantised format.
template <class V>
constexpr void put_matmuls(KernelTable& table) {
  generic::put_quantized<V, Matmul>(table);
}

}  // namespace kvasir::kernels::amx
