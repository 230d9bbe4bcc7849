// What the formats' files share: halves, and the places of a row's numbers in a panel's group.
#pragma once

#include "cpu_kernels/formats/format.h"
#include "cpu_kernels/formats/slabs.h"
#include "cpu_kernels/scalar/half.h"

namespace kvasir::kernels::formats {

inline bool is_finite_half(uint16_t half) {
  return (half & 0x7C00U) != 0x7C00U;
}

inline float half_at(const std::byte* at) {
  return scalar::half_to_float(load_u16(at));
}

/// Copies a half to the row's place among 16; false when it is NaN or infinite.
inline bool pack_half(uint16_t half, int64_t row, std::byte* halves) {
  std::memcpy(halves + row * 2, &half, 2);
  return is_finite_half(half);
}

inline uint8_t byte_at(const std::byte* at) {
  return static_cast<uint8_t>(*at);
}

/// Scales of sub-blocks 2p and 2p + 1 lie side by side: [pair][16 rows][2] bytes.
inline int64_t pair_place(int64_t sub_block, int64_t row) {
  return sub_block / 2 * 32 + row * 2 + sub_block % 2;
}

inline void fill(int16_t (&numbers)[kMaxSubBlocks], int16_t value) {
  for (auto& n : numbers) n = value;
}

/// Codes of a group in slabs of kBits, less `offset`.
template <int kBits>
void read_codes(const std::byte* codes, int64_t row, int64_t n_columns, int offset, int8_t* out) {
  for (int64_t slab = 0; slab < n_columns / 32; ++slab) {
    uint32_t lines[8];
    read_slab<kBits>(codes + slab * slab_bytes<kBits>(), row, lines);
    for (int64_t i = 0; i < 32; ++i) {
      const auto code = static_cast<uint8_t>(lines[i / 4] >> (i % 4 * 8));
      // 8-bit codes are signed in the file; the cast keeps them.
      out[slab * 32 + i] = static_cast<int8_t>(code - offset);
    }
  }
}

}  // namespace kvasir::kernels::formats
