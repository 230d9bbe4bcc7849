// Formats with blocks of 32: Q4_0 Q4_1 Q5_0 Q5_1 Q8_0, IQ4_NL and MXFP4.
//
// File blocks (https://github.com/ggml-org/ggml, and for MXFP4 the OCP Microscaling specification):
// the scales d (and m) as halves, for MXFP4 one byte of exponent; Q5: 32 bits, the highest bit of
// each code; 16 bytes, byte i holding code i (low nibble) and code i + 16; Q8_0: 32 bytes.
//
// In a panel, scales of a group: [16 d] halves, then [16 m] halves where there is m (MXFP4: [16]
// bytes); codes: a slab, see slabs.h.
#include "cpu_kernels/formats/tables.h"
#include "cpu_kernels/formats/value_lists.h"

namespace kvasir::kernels::formats {
namespace {

/// The nibbles of 16 bytes as 8 words: low nibbles are columns 0 to 15.
void nibble_lines(const std::byte* bytes, uint32_t (&lines)[8]) {
  for (int i = 0; i < 4; ++i) {
    const uint32_t word = load_word(bytes + 4 * i);
    lines[i] = word & every_byte(15);
    lines[i + 4] = (word >> 4) & every_byte(15);
  }
}

/// Bit 4 of each code from a 32-bit mask, bit c for column c.
void add_fifth_bits(uint32_t bits, uint32_t (&lines)[8]) {
  for (int i = 0; i < 8; ++i) {
    const uint32_t four = (bits >> (4 * i)) & 15U;
    // Spreads bits 0..3 to the bytes' lowest bits.
    lines[i] |= ((four * 0x00204081U) & every_byte(1)) << 4;
  }
}

template <int kHeader>
bool pack_halves(const std::byte* block, int64_t row, std::byte* scales) {
  bool finite = pack_half(load_u16(block), row, scales);
  if constexpr (kHeader == 4) finite = pack_half(load_u16(block + 2), row, scales + 32) && finite;
  return finite;
}

template <int kHeader>
bool pack_4(const std::byte* block, int64_t row, std::byte* scales, std::byte* codes) {
  uint32_t lines[8];
  nibble_lines(block + kHeader, lines);
  pack_slab<4>(lines, row, codes);
  return pack_halves<kHeader>(block, row, scales);
}

template <int kHeader>
bool pack_5(const std::byte* block, int64_t row, std::byte* scales, std::byte* codes) {
  uint32_t lines[8];
  nibble_lines(block + kHeader + 4, lines);
  add_fifth_bits(load_word(block + kHeader), lines);
  pack_slab<5>(lines, row, codes);
  return pack_halves<kHeader>(block, row, scales);
}

bool pack_8(const std::byte* block, int64_t row, std::byte* scales, std::byte* codes) {
  for (int64_t line = 0; line < 8; ++line)
    std::memcpy(codes + line * 64 + row * 4, block + 2 + line * 4, 4);
  return pack_half(load_u16(block), row, scales);
}

bool pack_mxfp4(const std::byte* block, int64_t row, std::byte* scales, std::byte* codes) {
  uint32_t lines[8];
  nibble_lines(block + 1, lines);
  pack_slab<4>(lines, row, codes);
  scales[row] = block[0];
  return byte_at(block) != 0xFF;  // the specification's NaN
}

template <int kBits, int kOffset, bool kMinimum>
void read_halves(const std::byte* scales, const std::byte* codes, int64_t row, RowGroup& group) {
  group.d = half_at(scales + row * 2);
  group.m = kMinimum ? half_at(scales + 32 + row * 2) : 0.0F;
  fill(group.scales, 1);
  fill(group.minimums, 1);
  read_codes<kBits>(codes, row, 32, kOffset, group.codes);
}

void read_iq4_nl(const std::byte* scales, const std::byte* codes, int64_t row, RowGroup& group) {
  read_halves<4, 0, false>(scales, codes, row, group);
  for (int i = 0; i < 32; ++i) group.codes[i] = kIq4Values[group.codes[i]];
}

void read_mxfp4(const std::byte* scales, const std::byte* codes, int64_t row, RowGroup& group) {
  // 2^(e - 128): the values' list is doubled. Below 2^-126 the float is subnormal.
  const uint32_t e = byte_at(scales + row);
  const uint32_t bits = e < 2 ? 0x00200000U << e : (e - 1) << 23;
  std::memcpy(&group.d, &bits, sizeof(bits));
  group.m = 0.0F;
  fill(group.scales, 1);
  fill(group.minimums, 1);
  read_codes<4>(codes, row, 32, 0, group.codes);
  for (int i = 0; i < 32; ++i) group.codes[i] = kMxfp4Values[group.codes[i]];
}

}  // namespace

constexpr Format kQ4_0 = {32, 18, 32, 1, false, 32, 256, pack_4<2>, read_halves<4, 8, false>};
constexpr Format kQ4_1 = {32, 20, 32, 1, true, 64, 256, pack_4<4>, read_halves<4, 0, true>};
constexpr Format kQ5_0 = {32, 22, 32, 1, false, 32, 320, pack_5<2>, read_halves<5, 16, false>};
constexpr Format kQ5_1 = {32, 24, 32, 1, true, 64, 320, pack_5<4>, read_halves<5, 0, true>};
constexpr Format kQ8_0 = {32, 34, 32, 1, false, 32, 512, pack_8, read_halves<8, 0, false>};
constexpr Format kIq4Nl = {32, 18, 32, 1, false, 32, 256, pack_4<2>, read_iq4_nl};
constexpr Format kMxfp4 = {32, 17, 32, 1, false, 16, 256, pack_mxfp4, read_mxfp4};

}  // namespace kvasir::kernels::formats
