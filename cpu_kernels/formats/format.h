// How quantised weights lie in a panel, and what they mean: one table of formats.
//
// Every quantised format spells its weights with the same few terms, and products are made of
// these:
//
//   weight[c] = (d * scale[s]) * code[c] + m * minimum[s]      s = c / (columns of a sub-block)
//
// d and m are floats, everything else is a small integer. The product d * scale and, where d is a
// power of two away from the file's, that factor are exact in float, so this equals the gguf
// package's value bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu_kernels/kernels.h"

namespace kvasir::kernels::formats {

enum : int64_t { kWideColumns = kWideGroupColumns, kMaxSubBlocks = 16 };

/// One row's part of one group of a panel.
struct RowGroup {
  float d;
  float m;
  int16_t scales[kMaxSubBlocks];    ///< 1 where the format has none
  int16_t minimums[kMaxSubBlocks];  ///< 1 where there is m alone
  int8_t codes[kWideColumns];
};

/// A panel is two parts, both on 64-byte lines: the scales of all its groups, then the codes of
/// all.
struct Format {
  int64_t block_columns;  ///< of the file's block
  int64_t block_bytes;
  int64_t group_columns;  ///< quantised together in activations; a whole number of blocks
  int64_t n_sub_blocks;   ///< of a group, each with a scale of its own; 1: the group itself
  bool has_minimum;
  int64_t scale_bytes;  ///< of a group of 16 rows
  int64_t code_bytes;   ///< likewise; a multiple of 64
  /// Puts a row's blocks of one group in place; the rest of `scales` and `codes` is left alone.
  /// False when a scale or minimum is NaN or infinite.
  bool (*pack)(const std::byte* block, int64_t row, std::byte* scales, std::byte* codes);
  /// The definition of the packed layout.
  void (*read)(const std::byte* scales, const std::byte* codes, int64_t row, RowGroup& group);
};

/// f32, f16 and bf16 are not quantised: null.
const Format* find_format(WeightFormat format);

/// Bytes of the first part of a panel.
[[gnu::always_inline]] inline int64_t scales_part_bytes(const Format& format, int64_t n_groups) {
  return (n_groups * format.scale_bytes + 63) / 64 * 64;
}

}  // namespace kvasir::kernels::formats
