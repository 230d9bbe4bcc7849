// Products of f32 or f16 weights and float activations.
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

template <class V, class Weight>
struct DenseMatmul {
  using F = typename V::F;

  /// Rows [row, row + kRows) of one panel. The panel's 256 columns of a chunk (8 or 16 KB) are read
  /// once for all of them.
  template <int kRows>
  [[gnu::noinline]] static void multiply(const MatmulTask& task, int64_t panel, int64_t row) {
    const Activations& x = *task.input;
    const std::byte* w = task.weights->panels + static_cast<size_t>(panel) * task.weights->panel_bytes;
    const float* rows[kRows];
    F totals[kRows];
    for (int m = 0; m < kRows; ++m) {
      rows[m] = x.values + (row + m) * x.values_stride;
      totals[m] = F::broadcast(0);
    }
    for (int64_t first = 0; first < x.n_columns; first += kDenseChunk) {
      const int64_t end = x.n_columns - first < kDenseChunk ? x.n_columns : first + kDenseChunk;
      F parts[kRows];
      for (F& part : parts) part = F::broadcast(0);
      for (int64_t k = first; k < end; ++k) {
        const F weight = Weight::load(w + k * Weight::kColumnBytes);
        for (int m = 0; m < kRows; ++m)
          parts[m] = F::fma(weight, F::broadcast(rows[m][k]), parts[m]);
      }
      for (int m = 0; m < kRows; ++m) totals[m] = F::add(totals[m], parts[m]);
    }
    for (int m = 0; m < kRows; ++m) write(task, panel, row + m, totals[m]);
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

  template <int kRows = V::kDenseRows>
  KVASIR_INLINE void multiply_rest(const MatmulTask& task, int64_t panel, int64_t row, int64_t n) {
    if constexpr (kRows > 0) {
      if (n == kRows) {
        multiply<kRows>(task, panel, row);
      } else {
        multiply_rest<kRows - 1>(task, panel, row, n);
      }
    }
  }

  static void run(const MatmulTask& task) {
    const int64_t n_rows = task.input->n_rows;
    for (int64_t panel = task.first_panel; panel < task.end_panel; ++panel) {
      int64_t row = 0;
      for (; row + V::kDenseRows <= n_rows; row += V::kDenseRows)
        multiply<V::kDenseRows>(task, panel, row);
      multiply_rest(task, panel, row, n_rows - row);
    }
  }
};

}  // namespace kvasir::kernels::generic
