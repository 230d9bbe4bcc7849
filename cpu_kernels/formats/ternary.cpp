// TQ1_0 and TQ2_0: weights of -d, 0 and d.
//
// In a panel, scales of a group: [16 d] halves. Codes of TQ2_0: 8 slabs of 2 bits; of TQ1_0: 13
// lines of 64 bytes, byte 4r + j of line b: code j of row r of lines 5b to 5b + 4 (the last one: 4
// lines), as the file spells five of them in a byte: the number 81 t0 + 27 t1 + 9 t2 + 3 t3 + t4, t
// in 0..2, times 256 / 243 and rounded up. Digit i comes back as the carry of three times the byte
// times 3^i.
#include <array>

#include "cpu_kernels/formats/tables.h"

namespace kvasir::kernels::formats {
namespace {

constexpr uint32_t kPowers[5] = {1, 3, 9, 27, 81};

/// The byte of every number of five digits.
constexpr std::array<uint8_t, 243> bytes_of_numbers() {
  std::array<uint8_t, 243> bytes{};
  for (unsigned number = 0; number < 243; ++number)
    bytes[number] = static_cast<uint8_t>((number * 256 + 242) / 243);
  return bytes;
}
constexpr auto kBytes = bytes_of_numbers();

/// Digit i, 0..2.
uint8_t digit(uint8_t byte, int i) {
  return static_cast<uint8_t>(((byte * kPowers[i]) & 255U) * 3U >> 8);
}

/// The first kDigits digits of kBytes bytes, digit by digit.
template <int kBytesOf, int kDigitsOf>
void put_digits(const std::byte* bytes, uint8_t* digits) {
  for (int i = 0; i < kDigitsOf; ++i) {
    for (int c = 0; c < kBytesOf; ++c) digits[kBytesOf * i + c] = digit(byte_at(bytes + c), i);
  }
}

// TQ1_0: 32 bytes, digit i of byte c: column 32i + c; 16 bytes, digit i of byte c: column 160 +
// 16i + c; 4 bytes, digit i of byte c: column 240 + 4i + c; d

bool pack_tq1_0(const std::byte* block, int64_t row, std::byte* scales, std::byte* codes) {
  uint8_t digits[260];
  put_digits<32, 5>(block, digits);
  put_digits<16, 5>(block + 32, digits + 160);
  put_digits<4, 4>(block + 48, digits + 240);
  for (int c = 256; c < 260; ++c) digits[c] = 0;
  for (int line = 0; line < 13; ++line) {
    const uint8_t* first = digits + line * 20;
    for (int j = 0; j < 4; ++j) {
      const unsigned number = first[j] * 81U + first[4 + j] * 27U + first[8 + j] * 9U +
                              first[12 + j] * 3U + first[16 + j];
      codes[line * 64 + row * 4 + j] = static_cast<std::byte>(kBytes[number]);
    }
  }
  return pack_half(load_u16(block + 52), row, scales);
}

void read_tq1_0(const std::byte* scales, const std::byte* codes, int64_t row, RowGroup& group) {
  group.d = half_at(scales + row * 2);
  group.m = 0.0F;
  fill(group.scales, 1);
  for (int c = 0; c < 256; ++c) {
    const uint8_t byte = byte_at(codes + c / 20 * 64 + row * 4 + c % 4);
    group.codes[c] = static_cast<int8_t>(digit(byte, c % 20 / 4) - 1);
  }
}

// TQ2_0: 64 bytes as Q2_K; d

bool pack_tq2_0(const std::byte* block, int64_t row, std::byte* scales, std::byte* codes) {
  for (int slab = 0; slab < 8; ++slab) {
    uint32_t lines[8];
    for (int i = 0; i < 8; ++i) {
      lines[i] = (load_word(block + slab / 4 * 32 + 4 * i) >> (slab % 4 * 2)) & every_byte(3);
    }
    pack_slab<2>(lines, row, codes + slab * slab_bytes<2>());
  }
  return pack_half(load_u16(block + 64), row, scales);
}

void read_tq2_0(const std::byte* scales, const std::byte* codes, int64_t row, RowGroup& group) {
  group.d = half_at(scales + row * 2);
  group.m = 0.0F;
  fill(group.scales, 1);
  read_codes<2>(codes, row, 256, 1, group.codes);
}

}  // namespace

constexpr Format kTq1_0 = {256, 54, 256, 1, false, 32, 832, pack_tq1_0, read_tq1_0};
constexpr Format kTq2_0 = {256, 66, 256, 1, false, 32, 1024, pack_tq2_0, read_tq2_0};

}  // namespace kvasir::kernels::formats
