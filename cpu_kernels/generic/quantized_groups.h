// Where an inner loop finds a panel's groups: in memory as they are packed, or in a tile unpacked
// before.
#pragma once

#include "cpu_kernels/generic/quantized_formats.h"

namespace kvasir::kernels::generic {

// A tile of 16 rows x 1,024 columns takes 16 KB as bytes and 4 to 5 KB of scales: it stays in L1
// while every row of the batch passes by. 128 rows of 1,024 activation codes are 128 KB of L2.
enum : int64_t { kTileColumns = 1024, kTileGroups = 32, kTileWideGroups = 4, kBlockRows = 128 };

struct TileScratch {
  alignas(64) std::byte lines[kTileColumns * 16];
  alignas(64) float scales[kTileGroups * 32];                   ///< [group][16 d, 16 m]
  alignas(64) std::byte scale_pairs[kTileWideGroups * 8 * 64];  ///< [group][pair]
  alignas(64) std::byte minimum_pairs[kTileWideGroups * 8 * 64];
  alignas(64) float sums[kBlockRows * 16];  ///< [row][16]
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
    const std::byte* at = w.scratch->lines + ((g - w.first_group) * Shape::kSlabs + slab) * 512;
    for_constants<8>([&](auto i) __attribute__((always_inline)) {
      use(V::load_line(at + i.value * 64), i);
    });
  }
};

template <class Format>
KVASIR_INLINE PackedGroups<Format> packed_groups(const MatmulTask& task, int64_t panel) {
  const PackedMatrix& w = *task.weights;
  const std::byte* at = w.panels + static_cast<size_t>(panel) * w.panel_bytes;
  const int64_t n_groups = w.n_columns / Format::Shape::kColumns;
  return {at, at + (n_groups * Format::kScaleBytes + 63) / 64 * 64,
          w.panels + static_cast<size_t>(task.end_panel) * w.panel_bytes};
}

}  // namespace kvasir::kernels::generic
