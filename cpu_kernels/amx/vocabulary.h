// AVX-512 VNNI with AMX: the tile unit multiplies 16 rows of activations with a slab of a panel.
#pragma once

#include <immintrin.h>

#include "cpu_kernels/avx512vnni/vocabulary.h"

namespace kvasir::kernels::amx {

/// Three tiles of the CPU: sums [16][16] int32, activations [16][4 * lines] int8, codes [lines][64]
/// u8.
struct CpuTiles {
  /// For slabs of `lines` lines of 4 columns.
  KVASIR_INLINE void configure(int lines) {
    struct alignas(64) {
      uint8_t palette = 1;
      uint8_t start_row = 0;
      uint8_t reserved[14] = {};
      uint16_t column_bytes[16] = {};
      uint8_t rows[16] = {};
    } layout;
    layout.rows[0] = 16;
    layout.column_bytes[0] = 64;
    layout.rows[1] = 16;
    layout.column_bytes[1] = static_cast<uint16_t>(4 * lines);
    layout.rows[2] = static_cast<uint8_t>(lines);
    layout.column_bytes[2] = 64;
    // g++ 12 believes that only 8 bytes of it are read, and drops what is written to the others.
    asm volatile("" : : "r"(&layout) : "memory");
    _tile_loadconfig(&layout);
  }
  KVASIR_INLINE void release() { _tile_release(); }
  /// sums[m][n] = sum over the columns of x[m][k] * code[n][k]; x: 16 rows `stride` bytes apart.
  KVASIR_INLINE void multiply(const int8_t* x, int64_t stride, const std::byte* lines,
                              int32_t* sums) {
    asm volatile("" : : : "memory");  // g++ 12 does not know that tile loads read memory
    _tile_zero(0);
    _tile_loadd(1, x, stride);
    _tile_loadd(2, lines, 64);
    _tile_dpbsud(0, 1, 2);
    _tile_stored(0, sums, 64);
  }
};

/// `TilesOf`: CpuTiles, or what imitates them in tests.
template <class TilesOf>
struct Vocabulary : avx512vnni::Isa {
  using Tiles = TilesOf;
  static constexpr const char* kName = "amx";
  static constexpr int kQuantizedRows = 8;  ///< of what is left of a batch: fewer than 16
};

}  // namespace kvasir::kernels::amx
