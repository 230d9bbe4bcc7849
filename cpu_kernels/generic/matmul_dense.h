// Products of f32, f16 or bf16 weights and float activations.
#pragma once

#include "cpu_kernels/kernels.h"
#include "cpu_kernels/simd/lanes.h"

namespace kvasir::kernels::generic {

template <class V>
struct DenseF32 {
  static constexpr int64_t kColumnBytes = 64;
  KVASIR_INLINE typename V::F load(const std::byte* p) {
    return V::F::load(reinterpret_cast<const float*>(p));
  }
};

template <class V>
struct DenseF16 {
  static constexpr int64_t kColumnBytes = 32;
  KVASIR_INLINE typename V::F load(const std::byte* p) { return V::load_half(p); }
};

template <class V>
struct DenseBF16 {
  static constexpr int64_t kColumnBytes = 32;
  KVASIR_INLINE typename V::F load(const std::byte* p) { return V::load_bfloat(p); }
};

template <class V, class Weight>
struct DenseMatmul {
  using F = typename V::F;

  static constexpr int64_t kBlockRows = 512;
  /// When the weights pass by only once. f16, 8,192 outputs, 4,096 columns from memory, AVX-512, 4
  /// rows: 2,136 us without; 2,042, 1,610 and 1,353 with 1, 2 and 4 KB. 1 row: 1,563; 1,699, 1,463,
  /// 1,461.
  static constexpr int64_t kAheadBytes = 4096;

  /// Panels taken together with kRows rows: as many as V's registers hold sums for, 4 at most.
  template <int kRows>
  static constexpr int panels_together() {
    const int n = V::kDenseSums / kRows;
    return n > 4 ? 4 : n < 1 ? 1 : n;
  }

  struct Scratch {
    alignas(64) float totals[kBlockRows * 4 * 16];  // [row][panel][16]
  };
  static_assert(sizeof(Scratch) <= kMatmulScratchBytes);

  /// What one call of `multiply` covers.
  struct Tile {
    int64_t panel;
    int64_t row;
    int64_t first;  ///< columns [first, end), one chunk
    int64_t end;
  };

  /// One chunk of rows [row, row + kRows) and panels [panel, panel + kPanels): a chain of
  /// multiply-adds for each, in registers, then one addition to the totals.
  template <int kRows, int kPanels, bool kAhead>
  [[gnu::noinline]] static void multiply(const MatmulTask& task, const Tile& tile, float* totals) {
    const Activations& x = *task.input;
    const std::byte* w =
        task.weights->panels + static_cast<size_t>(tile.panel) * task.weights->panel_bytes;
    const auto panel_bytes = static_cast<int64_t>(task.weights->panel_bytes);
    const float* values = x.values + tile.row * x.values_stride;
    F parts[kRows][kPanels];
    for (auto& row : parts)
      for (F& part : row) part = F::broadcast(0);
    for (int64_t k = tile.first; k < tile.end; ++k) {
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) {
        const std::byte* at = w + p * panel_bytes + k * Weight::kColumnBytes;
        if constexpr (kAhead) __builtin_prefetch(at + kAheadBytes);
        const F weight = Weight::load(at);
#pragma GCC unroll 16
        for (int m = 0; m < kRows; ++m)
          parts[m][p] = F::fma(weight, F::broadcast(values[m * x.values_stride + k]), parts[m][p]);
      }
    }
    const bool last = tile.end == x.n_columns;
    for (int m = 0; m < kRows; ++m) {
      for (int p = 0; p < kPanels; ++p) {
        float* total = totals + (m * kPanels + p) * 16;
        const F sum = F::add(tile.first == 0 ? F::broadcast(0) : F::load(total), parts[m][p]);
        if (last) {
          write(task, tile.panel + p, tile.row + m, sum);
        } else {
          F::store(total, sum);
        }
      }
    }
  }

  KVASIR_INLINE void write(const MatmulTask& task, int64_t panel, int64_t m, const F& sum) {
    const int64_t n = panel * kPanelRows;
    const int64_t count = task.weights->n_rows - n;
    float* y = task.output + m * task.output_stride + n;
    if (count >= kPanelRows) {
      F::store(y, task.add_to_output ? F::add(F::load(y), sum) : sum);
    } else {
      const F old = task.add_to_output ? F::load_first(y, count) : sum;
      F::store_first(y, task.add_to_output ? F::add(old, sum) : sum, count);
    }
  }

  /// Exactly n rows, n <= kRows.
  template <int kPanels, bool kAhead, int kRows>
  KVASIR_INLINE void multiply_rows(const MatmulTask& task, const Tile& tile, int64_t n,
                                   float* totals) {
    if constexpr (kRows > 0) {
      if (n == kRows) {
        multiply<kRows, kPanels, kAhead>(task, tile, totals);
      } else {
        multiply_rows<kPanels, kAhead, kRows - 1>(task, tile, n, totals);
      }
    }
  }

  /// Rows [block, block_end) of panels [panel, panel + kPanels), at most kRows at once. Chunks come
  /// before rows: kPanels * 16 KB of weights and 1 KB of every row stay in the caches.
  template <int kPanels, int kRows>
  static void multiply_panels(const MatmulTask& task, int64_t panel, int64_t block,
                              int64_t block_end) {
    auto& scratch = *reinterpret_cast<Scratch*>(task.scratch);
    const int64_t n_columns = task.input->n_columns;
    // Equal groups: 8 rows are 4 + 4, not 6 + 2, which has too few chains.
    const int64_t n_rows = block_end - block;
    const int64_t n_groups = (n_rows + kRows - 1) / kRows;
    const int64_t step = (n_rows + n_groups - 1) / n_groups;
    for (int64_t first = 0; first < n_columns; first += kDenseChunk) {
      const int64_t end = n_columns - first < kDenseChunk ? n_columns : first + kDenseChunk;
      for (int64_t row = block; row < block_end; row += step) {
        const int64_t n = block_end - row < step ? block_end - row : step;
        float* totals = scratch.totals + (row - block) * kPanels * 16;
        const Tile tile{panel, row, first, end};
        if (n_groups == 1) {
          multiply_rows<kPanels, true, kRows>(task, tile, n, totals);
        } else {
          multiply_rows<kPanels, false, kRows>(task, tile, n, totals);
        }
      }
    }
  }

  /// All panels, kPanels at a time, and what is left one by one.
  template <int kPanels, int kRows>
  static void multiply_block(const MatmulTask& task, int64_t block, int64_t block_end) {
    int64_t panel = task.first_panel;
    for (; panel + kPanels <= task.end_panel; panel += kPanels)
      multiply_panels<kPanels, kRows>(task, panel, block, block_end);
    for (; panel < task.end_panel; ++panel)
      multiply_panels<1, V::kDenseRows>(task, panel, block, block_end);
  }

  static void run(const MatmulTask& task) {
    constexpr int kWide = panels_together<V::kDenseRows>();
    constexpr int kFew = V::kDenseFewRows;
    const int64_t n_rows = task.input->n_rows;
    for (int64_t block = 0; block < n_rows; block += kBlockRows) {
      const int64_t end = n_rows - block < kBlockRows ? n_rows : block + kBlockRows;
      if (end - block == 1) {
        multiply_block<4, 1>(task, block, end);
      } else if (end - block <= kFew) {
        multiply_block<panels_together<kFew>(), kFew>(task, block, end);
      } else {
        multiply_block<kWide, V::kDenseRows>(task, block, end);
      }
    }
  }
};

}  // namespace kvasir::kernels::generic
