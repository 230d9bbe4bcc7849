// Formats whose codes are places in a codebook of vectors: IQ1_S IQ1_M, IQ2_XXS IQ2_XS IQ2_S,
// IQ3_XXS IQ3_S.
//
// In a panel, scales of a group: [16 d] halves; codes: the file's blocks of the 16 rows, without
// their d where it is one half (IQ1_M spreads it over its scales and stays whole), each row's at
// row * (code_bytes / 16).
//
// The integers are those of the formulas made whole: IQ2: d (0.5 + s) / 4 = (d / 8) (2s + 1);
// IQ3_XXS: d (0.5 + s) / 2 = (d / 4) (2s + 1); IQ1: d (2s + 1) (v +- 1/8) = (d / 8) (2s + 1) (8v +-
// 1).
#include <array>

#include "cpu_kernels/formats/tables.h"

namespace kvasir::kernels::formats {
namespace {

#include "cpu_kernels/formats/codebooks.inc"

/// Vectors of 8 elements as the bytes of a word.
template <size_t n>
constexpr std::array<uint64_t, n> vectors_of_8(const uint16_t (&places)[n],
                                               const int8_t (&values)[3]) {
  std::array<uint64_t, n> vectors{};
  for (size_t entry = 0; entry < n; ++entry) {
    for (unsigned i = 0; i < 8; ++i) {
      const auto value = static_cast<uint8_t>(values[(places[entry] >> (2 * i)) & 3U]);
      vectors[entry] |= uint64_t{value} << (8 * i);
    }
  }
  return vectors;
}
template <size_t n>
constexpr std::array<uint32_t, n> vectors_of_4(const uint16_t (&places)[n],
                                               const int8_t (&values)[8]) {
  std::array<uint32_t, n> vectors{};
  for (size_t entry = 0; entry < n; ++entry) {
    for (unsigned i = 0; i < 4; ++i) {
      const auto value = static_cast<uint8_t>(values[(places[entry] >> (3 * i)) & 7U]);
      vectors[entry] |= uint32_t{value} << (8 * i);
    }
  }
  return vectors;
}

constexpr int8_t kValues1[3] = {-8, 0, 8};
constexpr int8_t kValues2[3] = {8, 25, 43};
constexpr int8_t kValues3Xxs[8] = {4, 12, 20, 28, 36, 44, 52, 62};
constexpr int8_t kValues3S[8] = {1, 3, 5, 7, 9, 11, 13, 15};
constexpr auto kBook1 = vectors_of_8(kIq1Places, kValues1);
constexpr auto kBook2Xxs = vectors_of_8(kIq2XxsPlaces, kValues2);
constexpr auto kBook2Xs = vectors_of_8(kIq2XsPlaces, kValues2);
constexpr auto kBook2S = vectors_of_8(kIq2SPlaces, kValues2);
constexpr auto kBook3Xxs = vectors_of_4(kIq3XxsPlaces, kValues3Xxs);
constexpr auto kBook3S = vectors_of_4(kIq3SPlaces, kValues3S);

/// Bit i of a byte as all bits of byte i.
constexpr std::array<uint64_t, 256> masks_of_bytes() {
  std::array<uint64_t, 256> masks{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    for (unsigned i = 0; i < 8; ++i)
      masks[byte] |= ((byte >> i) & 1U) != 0 ? uint64_t{0xFF} << (8 * i) : 0;
  }
  return masks;
}
constexpr auto kMasks = masks_of_bytes();

/// Seven signs stored, the eighth makes their number even.
constexpr std::array<uint8_t, 128> signs_of_seven() {
  std::array<uint8_t, 128> signs{};
  for (unsigned seven = 0; seven < 128; ++seven) {
    unsigned parity = 0;
    for (unsigned i = 0; i < 7; ++i) parity ^= (seven >> i) & 1U;
    signs[seven] = static_cast<uint8_t>(seven | parity << 7);
  }
  return signs;
}
constexpr auto kSigns = signs_of_seven();

/// Eight positive bytes, those with a sign bit turned negative: (v ^ -1) + 1 never carries for v >
/// 0.
void put_signed(uint64_t magnitudes, uint8_t signs, int8_t* codes) {
  const uint64_t mask = kMasks[signs];
  const uint64_t word = (magnitudes ^ mask) + (mask & 0x0101010101010101U);
  std::memcpy(codes, &word, sizeof(word));
}

template <int64_t kBlockBytes>
bool pack_whole(const std::byte* block, int64_t row, std::byte* scales, std::byte* codes) {
  std::memcpy(codes + row * (kBlockBytes - 2), block + 2, kBlockBytes - 2);
  return pack_half(load_u16(block), row, scales);
}

/// d times a power of two: exact, a half has 11 bits and float reaches far below.
void start(const std::byte* scales, int64_t row, float factor, RowGroup& group) {
  group.d = half_at(scales + row * 2) * factor;
  group.m = 0.0F;
}

int16_t odd(uint32_t s) {
  return static_cast<int16_t>(2 * s + 1);
}

// IQ2_XXS: d; for 32 columns: 4 places of 8 bits, then 4 x 7 bits of signs and 4 of scale

void read_iq2_xxs(const std::byte* scales, const std::byte* codes, int64_t row, RowGroup& group) {
  start(scales, row, 0.125F, group);
  for (int s = 0; s < 8; ++s) {
    const std::byte* at = codes + row * 64 + s * 8;
    const uint32_t signs = load_word(at + 4);
    group.scales[s] = odd(signs >> 28);
    for (int i = 0; i < 4; ++i)
      put_signed(kBook2Xxs[byte_at(at + i)], kSigns[(signs >> (7 * i)) & 127U],
                 group.codes + s * 32 + i * 8);
  }
}

// IQ2_XS: d; 32 x (9 bits of place, 7 of signs); 16 x 4 bits of scale

void read_iq2_xs(const std::byte* scales, const std::byte* codes, int64_t row, RowGroup& group) {
  start(scales, row, 0.125F, group);
  const std::byte* at = codes + row * 72;
  for (int i = 0; i < 32; ++i) {
    const uint32_t both = load_u16(at + 2 * i);
    put_signed(kBook2Xs[both & 511U], kSigns[both >> 9], group.codes + i * 8);
  }
  for (int s = 0; s < 16; ++s)
    group.scales[s] = odd((byte_at(at + 64 + s / 2) >> (s % 2 * 4)) & 15U);
}

// IQ2_S: d; 32 low bytes of places; 32 bytes of signs; 8 bytes, 2 highest bits of 4 places each;
// scales

void read_iq2_s(const std::byte* scales, const std::byte* codes, int64_t row, RowGroup& group) {
  start(scales, row, 0.125F, group);
  const std::byte* at = codes + row * 80;
  for (int i = 0; i < 32; ++i) {
    const uint32_t high = (byte_at(at + 64 + i / 4) >> (i % 4 * 2)) & 3U;
    put_signed(kBook2S[byte_at(at + i) | high << 8], byte_at(at + 32 + i), group.codes + i * 8);
  }
  for (int s = 0; s < 16; ++s)
    group.scales[s] = odd((byte_at(at + 72 + s / 2) >> (s % 2 * 4)) & 15U);
}

// IQ3_XXS: d; 64 places of 4 elements; for 32 columns 4 x 7 bits of signs and 4 of scale

void read_iq3_xxs(const std::byte* scales, const std::byte* codes, int64_t row, RowGroup& group) {
  start(scales, row, 0.25F, group);
  const std::byte* at = codes + row * 96;
  for (int s = 0; s < 8; ++s) {
    const uint32_t signs = load_word(at + 64 + 4 * s);
    group.scales[s] = odd(signs >> 28);
    for (int i = 0; i < 4; ++i) {
      const std::byte* places = at + s * 8 + i * 2;
      const uint64_t vector =
          kBook3Xxs[byte_at(places)] | static_cast<uint64_t>(kBook3Xxs[byte_at(places + 1)]) << 32;
      put_signed(vector, kSigns[(signs >> (7 * i)) & 127U], group.codes + s * 32 + i * 8);
    }
  }
}

// IQ3_S: d; 64 low bytes of places; 8 bytes of their highest bits; 32 bytes of signs; 8 x 4 bits
// of scale

void read_iq3_s(const std::byte* scales, const std::byte* codes, int64_t row, RowGroup& group) {
  start(scales, row, 1.0F, group);
  const std::byte* at = codes + row * 108;
  for (int s = 0; s < 8; ++s) {
    const uint32_t highs = byte_at(at + 64 + s);
    group.scales[s] = odd((byte_at(at + 104 + s / 2) >> (s % 2 * 4)) & 15U);
    for (int i = 0; i < 4; ++i) {
      const std::byte* places = at + s * 8 + i * 2;
      const uint32_t first = byte_at(places) | ((highs >> (2 * i)) & 1U) << 8;
      const uint32_t second = byte_at(places + 1) | ((highs >> (2 * i + 1)) & 1U) << 8;
      put_signed(kBook3S[first] | static_cast<uint64_t>(kBook3S[second]) << 32,
                 byte_at(at + 72 + s * 4 + i), group.codes + s * 32 + i * 8);
    }
  }
}

/// 8v + 1 or 8v - 1 of eight bytes; -8 - 1 to 8 + 1, so no byte carries when each is biased by 16.
void put_shifted(uint64_t eight_v, bool minus, int8_t* codes) {
  constexpr uint64_t kOnes = 0x0101010101010101U;
  const uint64_t biased = (eight_v ^ 0x8080808080808080U) + (minus ? 0 : 2 * kOnes) - kOnes;
  const uint64_t word = biased ^ 0x8080808080808080U;
  std::memcpy(codes, &word, sizeof(word));
}

// IQ1_S: d; 32 low bytes of places; 8 x (4 x 3 highest bits, 3 bits of scale, 1 of sign of the
// shift)

void read_iq1_s(const std::byte* scales, const std::byte* codes, int64_t row, RowGroup& group) {
  start(scales, row, 0.125F, group);
  const std::byte* at = codes + row * 48;
  for (int s = 0; s < 8; ++s) {
    const uint32_t high = load_u16(at + 32 + 2 * s);
    group.scales[s] = odd((high >> 12) & 7U);
    for (int i = 0; i < 4; ++i) {
      const uint32_t place = byte_at(at + s * 4 + i) | ((high >> (3 * i)) & 7U) << 8;
      put_shifted(kBook1[place], (high & 0x8000U) != 0, group.codes + s * 32 + i * 8);
    }
  }
}

// IQ1_M: 32 low bytes of places; 16 bytes, nibble i % 2: 3 highest bits and the shift's sign of
// place i; 4 words of 4 x 3 bits of scale and, highest first in the last, 4 bits of d

bool pack_iq1_m(const std::byte* block, int64_t row, std::byte* scales, std::byte* codes) {
  std::memcpy(codes + row * 56, block, 56);
  uint32_t d = 0;
  for (int i = 0; i < 4; ++i)
    d |= static_cast<uint32_t>(load_u16(block + 48 + 2 * i) >> 12) << (4 * i);
  return pack_half(static_cast<uint16_t>(d), row, scales);
}

void read_iq1_m(const std::byte* scales, const std::byte* codes, int64_t row, RowGroup& group) {
  start(scales, row, 0.125F, group);
  const std::byte* at = codes + row * 56;
  for (int s = 0; s < 16; ++s) {
    group.scales[s] = odd((load_u16(at + 48 + s / 4 * 2) >> (s % 4 * 3)) & 7U);
    for (int i = 2 * s; i < 2 * s + 2; ++i) {
      const uint32_t nibble = (byte_at(at + 32 + i / 2) >> (i % 2 * 4)) & 15U;
      put_shifted(kBook1[byte_at(at + i) | (nibble & 7U) << 8], (nibble & 8U) != 0,
                  group.codes + i * 8);
    }
  }
}

}  // namespace

constexpr Format kIq2Xxs = {256, 66, 256, 8, false, 32, 1024, pack_whole<66>, read_iq2_xxs};
constexpr Format kIq2Xs = {256, 74, 256, 16, false, 32, 1152, pack_whole<74>, read_iq2_xs};
constexpr Format kIq2S = {256, 82, 256, 16, false, 32, 1280, pack_whole<82>, read_iq2_s};
constexpr Format kIq3Xxs = {256, 98, 256, 8, false, 32, 1536, pack_whole<98>, read_iq3_xxs};
constexpr Format kIq3S = {256, 110, 256, 8, false, 32, 1728, pack_whole<110>, read_iq3_s};
constexpr Format kIq1S = {256, 50, 256, 8, false, 32, 768, pack_whole<50>, read_iq1_s};
constexpr Format kIq1M = {256, 56, 256, 16, false, 32, 896, pack_iq1_m, read_iq1_m};

}  // namespace kvasir::kernels::formats
