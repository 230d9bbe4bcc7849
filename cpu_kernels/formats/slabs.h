// Codes of 32 columns of a panel, a *slab*: how 8 lines of 16 rows x 4 codes share bytes.
//
//   8 bits  8 lines of 64 bytes
//   4 bits  4 lines: byte j of line q holds code j of line 2q (low nibble) and of line 2q + 1
//   2 bits  2 lines: bits 2i, 2i + 1 of line h are line 4h + i
//   5, 3    the 4 or 2 lowest bits as above, then one line: bit i is the highest bit of line i
//   6       the 4 lowest bits as above, then two lines: bits 2i, 2i + 1 of the h-th are those of
//   line 4h + i
//
// Four codes of a row are handled as the bytes of one 32-bit word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kvasir::kernels::formats {

inline uint32_t load_word(const std::byte* at) {
  uint32_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}
inline void store_word(std::byte* at, uint32_t word) {
  std::memcpy(at, &word, sizeof(word));
}
inline uint16_t load_u16(const std::byte* at) {
  uint16_t value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

constexpr uint32_t every_byte(uint32_t b) {
  return b * 0x01010101U;
}

template <int kBits>
constexpr int64_t slab_bytes() {
  return 64 * kBits;
}

template <int kBits>
constexpr int low_bits() {
  return kBits == 8 ? 8 : kBits >= 4 ? 4 : 2;
}

/// `lines`: the row's 8 words, columns 4i to 4i + 3 in word i.
template <int kBits>
void pack_slab(const uint32_t (&lines)[8], int64_t row, std::byte* slab) {
  constexpr int kLow = low_bits<kBits>();
  std::byte* at = slab + row * 4;
  const auto put = [&at](uint32_t word) {
    store_word(at, word);
    at += 64;
  };
  constexpr int kTogether = 8 / kLow;  // lines in a byte
  for (int first = 0; first < 8; first += kTogether) {
    uint32_t word = 0;
    for (int i = 0; i < kTogether; ++i)
      word |= (lines[first + i] & every_byte((1U << kLow) - 1)) << (i * kLow);
    put(word);
  }
  if constexpr (kBits != kLow) {
    constexpr int kHigh = kBits - kLow;
    constexpr int kPerByte = 8 / kHigh;
    for (int first = 0; first < 8; first += kPerByte) {
      uint32_t word = 0;
      for (int i = 0; i < kPerByte; ++i)
        word |= ((lines[first + i] >> kLow) & every_byte((1U << kHigh) - 1)) << (i * kHigh);
      put(word);
    }
  }
}

/// The inverse of pack_slab.
template <int kBits>
void read_slab(const std::byte* slab, int64_t row, uint32_t (&lines)[8]) {
  constexpr int kLow = low_bits<kBits>();
  constexpr int kTogether = 8 / kLow;
  const std::byte* at = slab + row * 4;
  for (int line = 0; line < 8; ++line) {
    const uint32_t word = load_word(at + line / kTogether * 64);
    lines[line] = (word >> (line % kTogether * kLow)) & every_byte((1U << kLow) - 1);
  }
  if constexpr (kBits != kLow) {
    constexpr int kHigh = kBits - kLow;
    constexpr int kPerByte = 8 / kHigh;
    at += 64 * kLow;
    for (int line = 0; line < 8; ++line) {
      const uint32_t word = load_word(at + line / kPerByte * 64);
      lines[line] |= ((word >> (line % kPerByte * kHigh)) & every_byte((1U << kHigh) - 1)) << kLow;
    }
  }
}

}  // namespace kvasir::kernels::formats
