// Weight matrices as files have them, of random blocks with finite scales: for tests and
// benchmarks.
#pragma once

#include <algorithm>
#include <cstring>
#include <iterator>
#include <random>
#include <vector>

#include "cpu_kernels/kernels.h"
#include "cpu_kernels/scalar/half.h"

namespace kvasir::kernels::test {

/// A file's block, by WeightFormat: its size, and where its halves (scales, minimums) lie. MXFP4
/// has one byte of exponent instead, IQ1_M hides a half in the highest nibbles of its last 4 words.
struct FileBlock {
  int64_t columns;
  size_t bytes;
  std::vector<size_t> halves;
};
inline const FileBlock& file_block(WeightFormat format) {
  static const FileBlock kBlocks[] = {
      {1, 4, {}},         {1, 2, {}},          {1, 2, {}},         // f32 f16 bf16
      {32, 18, {0}},      {32, 20, {0, 2}},    {32, 22, {0}},      // q4_0 q4_1 q5_0
      {32, 24, {0, 2}},   {32, 34, {0}},       {32, 18, {0}},      // q5_1 q8_0 iq4_nl
      {32, 17, {}},       {256, 84, {80, 82}}, {256, 110, {108}},  // mxfp4 q2_k q3_k
      {256, 144, {0, 2}}, {256, 176, {0, 2}},  {256, 210, {208}},  // q4_k q5_k q6_k
      {256, 136, {0}},    {256, 66, {0}},      {256, 74, {0}},     // iq4_xs iq2_xxs iq2_xs
      {256, 82, {0}},     {256, 98, {0}},      {256, 110, {0}},    // iq2_s iq3_xxs iq3_s
      {256, 50, {0}},     {256, 56, {}},       {256, 54, {52}},    // iq1_s iq1_m tq1_0
      {256, 66, {64}},                                             // tq2_0
  };
  static_assert(std::size(kBlocks) == static_cast<size_t>(WeightFormat::count));
  return kBlocks[static_cast<size_t>(format)];
}

inline size_t file_row_bytes(WeightFormat format, int64_t columns) {
  const FileBlock& block = file_block(format);
  return static_cast<size_t>(columns / block.columns) * block.bytes;
}

/// `extreme`: all bytes of a block's codes are the same, all bits or none or the ends of a signed
/// byte; all activations +-127; every other group of activations has one sign, so that sums of
/// pairs reach their bounds.
enum class Codes { random, extreme };

inline void put_half(std::byte* at, float v) {
  const uint16_t h = scalar::float_to_half(v);
  std::memcpy(at, &h, 2);
}

/// Gives a block of random bytes finite scales.
inline void put_scales(WeightFormat format, std::byte* block, std::mt19937& random) {
  const auto unit = [&] { return static_cast<float>(random() >> 8) / 8388608.0F - 1.0F; };
  const FileBlock& layout = file_block(format);
  for (size_t i = 0; i < layout.halves.size(); ++i)
    put_half(block + layout.halves[i], unit() * (i == 0 ? 0.1F : 1.0F));
  if (format == WeightFormat::mxfp4) block[0] = static_cast<std::byte>(110 + random() % 20);
  if (format == WeightFormat::iq1_m) {
    std::byte half[2];
    put_half(half, unit() * 0.1F);
    for (size_t i = 0; i < 4; ++i) {
      const auto nibble = (half[i / 2] >> (i % 2 == 0 ? 0 : 4)) & std::byte{15};
      block[49 + 2 * i] = (block[49 + 2 * i] & std::byte{15}) | nibble << 4;
    }
  }
}

/// A matrix as a file has it: row-major blocks.
inline std::vector<std::byte> file_matrix(WeightFormat format, int64_t rows, int64_t columns,
                                          unsigned seed, Codes kind) {
  std::mt19937 random(seed);
  const FileBlock& layout = file_block(format);
  std::vector<std::byte> bytes(file_row_bytes(format, columns) * static_cast<size_t>(rows));
  const auto unit = [&] { return static_cast<float>(random() >> 8) / 8388608.0F - 1.0F; };
  for (size_t at = 0; at < bytes.size(); at += layout.bytes) {
    std::byte* block = bytes.data() + at;
    const float v = unit();
    if (format == WeightFormat::f32) {
      std::memcpy(block, &v, 4);
    } else if (format == WeightFormat::f16) {
      put_half(block, v);
    } else if (format == WeightFormat::bf16) {
      std::memcpy(block, reinterpret_cast<const std::byte*>(&v) + 2, 2);
    } else {
      constexpr std::byte kEnds[] = {std::byte{0xFF}, std::byte{0}, std::byte{0x80},
                                     std::byte{0x7F}};
      const std::byte all = kEnds[random() % 4];
      for (size_t i = 0; i < layout.bytes; ++i)
        block[i] = kind == Codes::extreme ? all : static_cast<std::byte>(random() % 256);
      if (kind == Codes::extreme && format == WeightFormat::q6_k)
        std::fill_n(block + 192, 16, kEnds[2 + random() % 2]);
      put_scales(format, block, random);
    }
  }
  return bytes;
}

}  // namespace kvasir::kernels::test
