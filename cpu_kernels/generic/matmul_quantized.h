// Products of quantised weights and int8 activations: one driver, one micro-kernel, for every code
// width and instruction set.
#pragma once

#include "cpu_kernels/kernels.h"
#include "cpu_kernels/simd/lanes.h"

namespace kvasir::kernels::generic {

// How a panel's group of 32 columns is read: 8 lines of 4 columns, in any order, since the integer
// sum is exact. `packed` reads the weights as they lie in memory; a tile holds the lines unpacked,
// as Dot takes them.

template <class V>
struct Q4_1 {
  using Dot = typename V::DotUnsigned4;
  static constexpr bool kHasMinimum = true;
  static constexpr int64_t kCodeBytes = 256;   // of one group
  static constexpr int64_t kGroupBytes = 320;  // with its scales

  KVASIR_INLINE int64_t scale_bytes(int64_t n_groups) { return n_groups * 64; }
  KVASIR_INLINE typename V::F scale(const std::byte* panel, int64_t group) {
    return V::load_half(panel + group * 64);
  }
  KVASIR_INLINE typename V::F minimum(const std::byte* panel, int64_t group) {
    return V::load_half(panel + group * 64 + 32);
  }
  /// use(line, first column in the group) for each of the 8 lines.
  template <class Use>
  KVASIR_INLINE void for_packed_lines(const std::byte* codes, const Use& use) {
#pragma GCC unroll 4
    for (int64_t quarter = 0; quarter < 4; ++quarter) {
      const auto both = V::load_line(codes + quarter * 64);
      use(V::low_nibbles(both), quarter * 4);
      use(V::high_nibbles(both), quarter * 4 + 16);
    }
  }
};

template <class V>
struct Q8_0 {
  using Dot = typename V::DotSigned8;
  static constexpr bool kHasMinimum = false;
  static constexpr int64_t kCodeBytes = 512;
  static constexpr int64_t kGroupBytes = 544;

  KVASIR_INLINE int64_t scale_bytes(int64_t n_groups) { return (n_groups * 32 + 63) / 64 * 64; }
  KVASIR_INLINE typename V::F scale(const std::byte* panel, int64_t group) {
    return V::load_half(panel + group * 32);
  }
  KVASIR_INLINE typename V::F minimum(const std::byte*, int64_t) { return V::F::broadcast(0); }
  template <class Use>
  KVASIR_INLINE void for_packed_lines(const std::byte* codes, const Use& use) {
#pragma GCC unroll 8
    for (int64_t line = 0; line < 8; ++line)
      use(V::prepare_signed(V::load_line(codes + line * 64)), line * 4);
  }
};

template <class V, class Codes>
struct QuantizedMatmul {
  using F = typename V::F;
  using Dot = typename Codes::Dot;

  // A tile of 16 rows x 1,024 columns takes 16 KB as bytes and 4 KB of scales: it stays in L1 while
  // every row of the batch passes by. 128 rows of 1,024 activation codes are 128 KB of L2.
  static constexpr int64_t kTileGroups = 32;
  static constexpr int64_t kBlockRows = 128;
  // One row, 576 columns, one thread of a Zen 5, GB/s of Q4_1 and Q8_0 as here; 8,192 bytes ahead;
  // with only the codes fetched, 4,096 bytes ahead, which left the next panel's scales out:
  //   weights from L3, VNNI   89, 69; 100, 60; 86, 49        AVX2   70, 74; 70, 62; 65, 39
  //   from memory (plain reads: 37), VNNI   61; 55; 34; and 20 without any
  static constexpr int64_t kPrefetchBytes = 16384;

  struct Scratch {
    alignas(64) std::byte lines[kTileGroups * 512];
    alignas(64) float scales[kTileGroups * 32];  // [group][16 d, 16 m]
    alignas(64) float sums[kBlockRows * 16];     // [row][16]
  };
  static_assert(sizeof(Scratch) <= kMatmulScratchBytes);

  /// Groups [first, end) of one panel straight from memory.
  struct Packed {
    const std::byte* panel;
    const std::byte* codes;
    const std::byte* end;  ///< of the task's last panel: what follows is another thread's
    KVASIR_INLINE F scale(const Packed& w, int64_t g) { return Codes::scale(w.panel, g); }
    KVASIR_INLINE F minimum(const Packed& w, int64_t g) { return Codes::minimum(w.panel, g); }
    template <class Use>
    KVASIR_INLINE void for_lines(const Packed& w, int64_t g, const Use& use) {
      const std::byte* at = w.codes + g * Codes::kCodeBytes;
      // Evenly through the panel, scales and codes alike, though a group reads from both.
      const std::byte* ahead = w.panel + g * Codes::kGroupBytes + kPrefetchBytes;
      if (ahead < w.end) {
        for (int64_t i = 0; i < Codes::kGroupBytes; i += 64) __builtin_prefetch(ahead + i);
      }
      Codes::for_packed_lines(at, use);
    }
  };
  /// The same from the unpacked tile.
  struct Tile {
    const Scratch* scratch;
    int64_t first_group;
    KVASIR_INLINE F scale(const Tile& w, int64_t g) {
      return F::load(w.scratch->scales + (g - w.first_group) * 32);
    }
    KVASIR_INLINE F minimum(const Tile& w, int64_t g) {
      return F::load(w.scratch->scales + (g - w.first_group) * 32 + 16);
    }
    template <class Use>
    KVASIR_INLINE void for_lines(const Tile& w, int64_t g, const Use& use) {
      const std::byte* at = w.scratch->lines + (g - w.first_group) * 512;
#pragma GCC unroll 8
      for (int64_t line = 0; line < 8; ++line) use(V::load_line(at + line * 64), line * 4);
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

  /// sums[m] += 16 outputs of rows [row, row + kRows) over groups [first, end).
  template <int kRows, class Weights>
  KVASIR_INLINE void multiply(const Weights& w, const Activations& x, int64_t row, int64_t first,
                              int64_t end, F (&sums)[kRows]) {
    using Codes8 = RowPointers<int8_t, kRows>;
    using Groups = RowPointers<ActivationGroup, kRows>;
    Codes8 codes =
        Codes8::make(x.codes + row * x.codes_stride + first * kGroupColumns, x.codes_stride);
    Groups groups = Groups::make(x.groups + row * x.groups_stride + first, x.groups_stride);
    for (int64_t g = first; g < end; ++g) {
      Dot dots[kRows];
#pragma GCC unroll 16
      for (int m = 0; m < kRows; ++m) Dot::start(dots[m], Groups::row(groups, m)->sum);
      Weights::for_lines(
          w, g, [&](const auto& line, int64_t column) __attribute__((always_inline)) {
#pragma GCC unroll 16
            for (int m = 0; m < kRows; ++m) Dot::add(dots[m], line, Codes8::row(codes, m) + column);
          });
      const F scale = Weights::scale(w, g);
#pragma GCC unroll 16
      for (int m = 0; m < kRows; ++m) {
        sums[m] = F::fma(F::multiply(scale, F::broadcast(Groups::row(groups, m)->scale)),
                         Dot::finish(dots[m]), sums[m]);
      }
      if constexpr (Codes::kHasMinimum) {
        const F minimum = Weights::minimum(w, g);
#pragma GCC unroll 16
        for (int m = 0; m < kRows; ++m)
          sums[m] = F::fma(minimum, F::broadcast(Groups::row(groups, m)->scaled_sum), sums[m]);
      }
      Codes8::advance(codes, kGroupColumns);
      Groups::advance(groups, 1);
    }
  }

  /// Stores 16 outputs of each of kRows rows; the last panel may have fewer.
  template <int kRows>
  KVASIR_INLINE void write(const MatmulTask& task, int64_t panel, int64_t row,
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

  KVASIR_INLINE Packed packed(const MatmulTask& task, int64_t panel) {
    const PackedMatrix& w = *task.weights;
    const std::byte* at = w.panels + static_cast<size_t>(panel) * w.panel_bytes;
    return {at, at + Codes::scale_bytes(w.n_columns / kGroupColumns),
            w.panels + static_cast<size_t>(task.end_panel) * w.panel_bytes};
  }

  /// Rows [row, row + kRows) against one panel, unpacked in registers.
  template <int kRows>
  [[gnu::noinline]] static void stream_panel(const MatmulTask& task, int64_t panel, int64_t row) {
    F sums[kRows];
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m) sums[m] = F::broadcast(0);
    multiply<kRows>(packed(task, panel), *task.input, row, 0,
                    task.weights->n_columns / kGroupColumns, sums);
    write<kRows>(task, panel, row, sums);
  }

  /// Unpacks groups [first, end) of a panel into the tile.
  [[gnu::noinline]] static void unpack(const Packed& w, int64_t first, int64_t end,
                                       Scratch& scratch) {
    for (int64_t g = first; g < end; ++g) {
      std::byte* lines = scratch.lines + (g - first) * 512;
      Packed::for_lines(
          w, g, [&](const auto& line, int64_t column) __attribute__((always_inline)) {
            V::store_line(lines + column * 16, line);
          });
      F::store(scratch.scales + (g - first) * 32, Packed::scale(w, g));
      if constexpr (Codes::kHasMinimum)
        F::store(scratch.scales + (g - first) * 32 + 16, Packed::minimum(w, g));
    }
  }

  /// Rows [row, row + kRows) of a block against the tile; sums carried in scratch between tiles.
  template <int kRows>
  [[gnu::noinline]] static void multiply_tile(const MatmulTask& task, Scratch& scratch,
                                              int64_t panel, int64_t block, int64_t row,
                                              int64_t first, int64_t end) {
    F sums[kRows];
    float* carried = scratch.sums + (row - block) * 16;
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m)
      sums[m] = first == 0 ? F::broadcast(0) : F::load(carried + m * 16);
    multiply<kRows>(Tile{&scratch, first}, *task.input, row, first, end, sums);
    if (end == task.weights->n_columns / kGroupColumns) {
      write<kRows>(task, panel, row, sums);
    } else {
#pragma GCC unroll 16
      for (int m = 0; m < kRows; ++m) F::store(carried + m * 16, sums[m]);
    }
  }

  /// Calls use(constant, row) for passes over rows [first, end) of at most V::kQuantizedRows, as
  /// equal as they can be: 13 rows as 7 + 6 run 15% faster than as 12 + 1.
  template <class Use>
  KVASIR_INLINE void for_passes(int64_t first, int64_t end, const Use& use) {
    for (int64_t row = first; row < end;) {
      const int64_t n_passes = (end - row + V::kQuantizedRows - 1) / V::kQuantizedRows;
      const int64_t n = (end - row + n_passes - 1) / n_passes;
      with_constant<V::kQuantizedRows>(n, row, use);
      row += n;
    }
  }
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
  template <int n>
  struct Constant {
    static constexpr int value = n;
  };

  /// Few rows: no tile, each panel is read from memory once and at most another time from L1.
  static void stream(const MatmulTask& task) {
    for (int64_t panel = task.first_panel; panel < task.end_panel; ++panel) {
      for_passes(0, task.input->n_rows, [&](auto rows, int64_t row) {
        stream_panel<decltype(rows)::value>(task, panel, row);
      });
    }
  }

  static void blocked(const MatmulTask& task) {
    auto& scratch = *reinterpret_cast<Scratch*>(task.scratch);
    const int64_t n_groups = task.weights->n_columns / kGroupColumns;
    const int64_t n_rows = task.input->n_rows;
    for (int64_t block = 0; block < n_rows; block += kBlockRows) {
      const int64_t block_end = n_rows - block < kBlockRows ? n_rows : block + kBlockRows;
      for (int64_t panel = task.first_panel; panel < task.end_panel; ++panel) {
        for (int64_t first = 0; first < n_groups; first += kTileGroups) {
          const int64_t end = n_groups - first < kTileGroups ? n_groups : first + kTileGroups;
          unpack(packed(task, panel), first, end, scratch);
          for_passes(block, block_end, [&](auto rows, int64_t row) {
            multiply_tile<decltype(rows)::value>(task, scratch, panel, block, row, first, end);
          });
        }
      }
    }
  }

  static void run(const MatmulTask& task) {
    if (task.input->n_rows <= V::kStreamedRows) {
      stream(task);
    } else {
      blocked(task);
    }
  }
};

}  // namespace kvasir::kernels::generic
