// Formats with super-blocks of 256 and integer scales of sub-blocks: Q2_K to Q6_K, and IQ4_XS.
//
// In a panel, scales of a group: [16 d] halves (Q2_K, Q4_K, Q5_K: then [16 dmin] halves), then the
// sub-blocks' scales as bytes in pairs (rows.h, pair_place), Q4_K and Q5_K: then their minimums
// likewise; Q2_K keeps scale and minimum in one byte, as the file does. Codes: 8 slabs.
#include "cpu_kernels/formats/tables.h"
#include "cpu_kernels/formats/value_lists.h"

namespace kvasir::kernels::formats {
namespace {

/// Codes `bits` wide, `shift` up in each of 4 bytes.
uint32_t field(const std::byte* at, int shift, uint32_t bits) {
  return (load_word(at) >> shift) & every_byte(bits);
}

/// dmin enters with its sign turned: weight = d scale code + m minimum, m = -dmin.
constexpr uint16_t kHalfSign = 0x8000;

// Q2_K: 16 bytes of scale | minimum << 4; 64 bytes, bits 2k of byte 32h + c: column 128h + 32k +
// c; d, dmin

bool pack_q2_k(const std::byte* block, int64_t row, std::byte* scales, std::byte* codes) {
  const bool finite = pack_half(load_u16(block + 80), row, scales);
  const bool finite_m = pack_half(load_u16(block + 82) ^ kHalfSign, row, scales + 32);
  for (int64_t s = 0; s < 16; ++s) scales[64 + pair_place(s, row)] = block[s];
  for (int slab = 0; slab < 8; ++slab) {
    uint32_t lines[8];
    for (int i = 0; i < 8; ++i)
      lines[i] = field(block + 16 + slab / 4 * 32 + 4 * i, slab % 4 * 2, 3);
    pack_slab<2>(lines, row, codes + slab * slab_bytes<2>());
  }
  return finite && finite_m;
}

void read_q2_k(const std::byte* scales, const std::byte* codes, int64_t row, RowGroup& group) {
  group.d = half_at(scales + row * 2);
  group.m = half_at(scales + 32 + row * 2);
  for (int64_t s = 0; s < 16; ++s) {
    const uint8_t both = byte_at(scales + 64 + pair_place(s, row));
    group.scales[s] = both & 15U;
    group.minimums[s] = static_cast<int16_t>(both >> 4);
  }
  read_codes<2>(codes, row, 256, 0, group.codes);
}

// Q3_K: 32 bytes, bit k of byte c: highest bit of column 32k + c; 64 bytes as Q2_K; 12 bytes of
// 6-bit scales; d

bool pack_q3_k(const std::byte* block, int64_t row, std::byte* scales, std::byte* codes) {
  const std::byte* six = block + 96;
  for (int s = 0; s < 16; ++s) {
    const uint32_t low = (byte_at(six + s % 8) >> (s / 8 * 4)) & 15U;
    const uint32_t high = (byte_at(six + 8 + s % 4) >> (s / 4 * 2)) & 3U;
    scales[32 + pair_place(s, row)] = static_cast<std::byte>((low | high << 4) - 32U);
  }
  for (int slab = 0; slab < 8; ++slab) {
    uint32_t lines[8];
    for (int i = 0; i < 8; ++i) {
      lines[i] = field(block + 32 + slab / 4 * 32 + 4 * i, slab % 4 * 2, 3) |
                 field(block + 4 * i, slab, 1) << 2;
    }
    pack_slab<3>(lines, row, codes + slab * slab_bytes<3>());
  }
  return pack_half(load_u16(block + 108), row, scales);
}

/// [16 d] and the scales of `n` sub-blocks as signed bytes.
void read_signed_scales(const std::byte* scales, int64_t row, int64_t n, RowGroup& group) {
  group.d = half_at(scales + row * 2);
  group.m = 0.0F;
  for (int64_t s = 0; s < n; ++s)
    group.scales[s] = static_cast<int8_t>(scales[32 + pair_place(s, row)]);
}

void read_q3_k(const std::byte* scales, const std::byte* codes, int64_t row, RowGroup& group) {
  read_signed_scales(scales, row, 16, group);
  read_codes<3>(codes, row, 256, 4, group.codes);
}

// Q4_K, Q5_K: d, dmin, 12 bytes of 6-bit scales and minimums; Q5_K: 32 bytes of highest bits as
// in Q3_K; 128 bytes, nibble k of byte 32j + c: column 64j + 32k + c

bool pack_scales_and_minimums(const std::byte* block, int64_t row, std::byte* scales) {
  const std::byte* six = block + 4;
  for (int s = 0; s < 8; ++s) {
    uint32_t scale, minimum;
    if (s < 4) {
      scale = byte_at(six + s) & 63U;
      minimum = byte_at(six + 4 + s) & 63U;
    } else {
      const uint32_t both = byte_at(six + 4 + s);
      scale = (both & 15U) | (byte_at(six + s - 4) >> 6) << 4;
      minimum = both >> 4 | (byte_at(six + s) >> 6) << 4;
    }
    scales[64 + pair_place(s, row)] = static_cast<std::byte>(scale);
    scales[192 + pair_place(s, row)] = static_cast<std::byte>(minimum);
  }
  const bool finite = pack_half(load_u16(block), row, scales);
  return pack_half(load_u16(block + 2) ^ kHalfSign, row, scales + 32) && finite;
}

void read_scales_and_minimums(const std::byte* scales, int64_t row, RowGroup& group) {
  group.d = half_at(scales + row * 2);
  group.m = half_at(scales + 32 + row * 2);
  for (int64_t s = 0; s < 8; ++s) {
    group.scales[s] = byte_at(scales + 64 + pair_place(s, row));
    group.minimums[s] = byte_at(scales + 192 + pair_place(s, row));
  }
}

bool pack_q4_k(const std::byte* block, int64_t row, std::byte* scales, std::byte* codes) {
  for (int slab = 0; slab < 8; ++slab) {
    uint32_t lines[8];
    for (int i = 0; i < 8; ++i)
      lines[i] = field(block + 16 + slab / 2 * 32 + 4 * i, slab % 2 * 4, 15);
    pack_slab<4>(lines, row, codes + slab * slab_bytes<4>());
  }
  return pack_scales_and_minimums(block, row, scales);
}

void read_q4_k(const std::byte* scales, const std::byte* codes, int64_t row, RowGroup& group) {
  read_scales_and_minimums(scales, row, group);
  read_codes<4>(codes, row, 256, 0, group.codes);
}

bool pack_q5_k(const std::byte* block, int64_t row, std::byte* scales, std::byte* codes) {
  for (int slab = 0; slab < 8; ++slab) {
    uint32_t lines[8];
    for (int i = 0; i < 8; ++i) {
      lines[i] = field(block + 48 + slab / 2 * 32 + 4 * i, slab % 2 * 4, 15) |
                 field(block + 16 + 4 * i, slab, 1) << 4;
    }
    pack_slab<5>(lines, row, codes + slab * slab_bytes<5>());
  }
  return pack_scales_and_minimums(block, row, scales);
}

void read_q5_k(const std::byte* scales, const std::byte* codes, int64_t row, RowGroup& group) {
  read_scales_and_minimums(scales, row, group);
  read_codes<5>(codes, row, 256, 0, group.codes);
}

// Q6_K: 128 bytes, nibble k of byte 64h + 32j + c: column 128h + 64k + 32j + c; 64 bytes, bits
// 2i of byte 32h + c: highest bits of column 128h + 32i + c; 16 int8 scales; d

bool pack_q6_k(const std::byte* block, int64_t row, std::byte* scales, std::byte* codes) {
  for (int slab = 0; slab < 8; ++slab) {
    const int half = slab / 4, in_half = slab % 4;
    uint32_t lines[8];
    for (int i = 0; i < 8; ++i) {
      lines[i] = field(block + 64 * half + 32 * (in_half % 2) + 4 * i, in_half / 2 * 4, 15) |
                 field(block + 128 + 32 * half + 4 * i, in_half * 2, 3) << 4;
    }
    pack_slab<6>(lines, row, codes + slab * slab_bytes<6>());
  }
  for (int64_t s = 0; s < 16; ++s) scales[32 + pair_place(s, row)] = block[192 + s];
  return pack_half(load_u16(block + 208), row, scales);
}

void read_q6_k(const std::byte* scales, const std::byte* codes, int64_t row, RowGroup& group) {
  read_signed_scales(scales, row, 16, group);
  read_codes<6>(codes, row, 256, 32, group.codes);
}

// IQ4_XS: d; 16 bits, 2 highest bits of each scale; 4 bytes of low nibbles of scales; 8 blocks
// of 16 bytes of nibbles as Q4_0

bool pack_iq4_xs(const std::byte* block, int64_t row, std::byte* scales, std::byte* codes) {
  const uint32_t highs = load_u16(block + 2);
  for (int s = 0; s < 8; ++s) {
    const uint32_t low = (byte_at(block + 4 + s / 2) >> (s % 2 * 4)) & 15U;
    const uint32_t high = (highs >> (2 * s)) & 3U;
    scales[32 + pair_place(s, row)] = static_cast<std::byte>((low | high << 4) - 32U);
    uint32_t lines[8];
    for (int i = 0; i < 8; ++i) lines[i] = field(block + 8 + 16 * s + i % 4 * 4, i / 4 * 4, 15);
    pack_slab<4>(lines, row, codes + s * slab_bytes<4>());
  }
  return pack_half(load_u16(block), row, scales);
}

void read_iq4_xs(const std::byte* scales, const std::byte* codes, int64_t row, RowGroup& group) {
  read_signed_scales(scales, row, 8, group);
  read_codes<4>(codes, row, 256, 0, group.codes);
  for (auto& code : group.codes) code = kIq4Values[code];
}

}  // namespace

constexpr Format kQ2K = {256, 84, 256, 16, true, 320, 1024, pack_q2_k, read_q2_k};
constexpr Format kQ3K = {256, 110, 256, 16, false, 288, 1536, pack_q3_k, read_q3_k};
constexpr Format kQ4K = {256, 144, 256, 8, true, 320, 2048, pack_q4_k, read_q4_k};
constexpr Format kQ5K = {256, 176, 256, 8, true, 320, 2560, pack_q5_k, read_q5_k};
constexpr Format kQ6K = {256, 210, 256, 16, false, 288, 3072, pack_q6_k, read_q6_k};
constexpr Format kIq4Xs = {256, 136, 256, 8, false, 160, 2048, pack_iq4_xs, read_iq4_xs};

}  // namespace kvasir::kernels::formats
