// Packing and unpacking, and scalar products, against what the gguf package and NumPy say: the file
// data/quantized.txt, written by tests/oracle/quantized_oracle.py.
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/kernels/matrices.h"

using namespace kvasir::kernels;        // NOLINT
using namespace kvasir::kernels::test;  // NOLINT

namespace {

template <class T>
std::vector<T> from_hex(const std::string& text) {
  std::vector<T> out(text.size() / 2 / sizeof(T));
  auto* bytes = reinterpret_cast<uint8_t*>(out.data());
  const auto digit = [](char c) {
    return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
  };
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes[i / 2] = static_cast<uint8_t>(digit(text[i]) << 4 | digit(text[i + 1]));
  return out;
}

WeightFormat format_of(const std::string& name) {
  for (size_t f = 0; f < 4; ++f)
    if (name == kFormatNames[f]) return static_cast<WeightFormat>(f);
  FAIL("unknown format " << name);
  return WeightFormat::count;
}

/// Lines of the fixture that start with `kind`, split at blanks.
std::vector<std::vector<std::string>> fixture(const std::string& kind) {
  std::ifstream file(KERNELS_TEST_DATA "/quantized.txt");
  REQUIRE(file.good());
  std::vector<std::vector<std::string>> lines;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::vector<std::string> split;
    for (std::string word; words >> word;) split.push_back(word);
    if (!split.empty() && split[0] == kind) lines.push_back(split);
  }
  return lines;
}

}  // namespace

TEST_CASE(
    "given blocks of a file, when packed and unpacked, then they are what gguf makes of them") {
  std::map<std::string, int> counts;
  for (const auto& line : fixture("block")) {
    const WeightFormat format = format_of(line[1]);
    const auto block = from_hex<std::byte>(line[2]);
    const auto expected = from_hex<float>(line[3]);
    REQUIRE(expected.size() == 32);
    // The block at every place of a panel of 3 columns of blocks, among copies of another one.
    const std::vector<std::byte> other(block.size(), std::byte{0x11});
    for (int64_t row = 0; row < 18; ++row) {
      const int64_t column = row % 3;
      std::vector<std::byte> source;
      for (int64_t i = 0; i < 18 * 3; ++i) {
        const auto& here = i == row * 3 + column ? block : other;
        source.insert(source.end(), here.begin(), here.end());
      }
      const Packed w = pack(format, source, 18, 96);
      std::vector<float> values(96);
      unpack_row(w.matrix, row, values.data());
      for (size_t i = 0; i < 32; ++i)
        REQUIRE(bits_of(values[static_cast<size_t>(column) * 32 + i]) == bits_of(expected[i]));
    }
    ++counts[line[1]];
  }
  for (const auto* name : kFormatNames) {
    MESSAGE(std::string(name) << ": " << counts[name] << " blocks");
    CHECK(counts[name] >= 8);
  }
}

TEST_CASE("given blocks and activations, when multiplied by scalar, then it is NumPy's product") {
  double worst = 0;
  int count = 0;
  for (const auto& line : fixture("product")) {
    const WeightFormat format = format_of(line[1]);
    const int64_t m = std::stoll(line[2]), n = std::stoll(line[3]), k = std::stoll(line[4]);
    const Packed w = pack(format, from_hex<std::byte>(line[5]), n, k);
    const auto x = from_hex<float>(line[6]);
    const auto y = from_hex<double>(line[7]);
    const auto magnitude = from_hex<double>(line[8]);
    Inputs inputs(m, k, 1, Codes::random);
    for (int64_t row = 0; row < m; ++row)
      scalar_kernels().quantize(x.data() + row * k, k, inputs.codes.data() + row * inputs.stride,
                                inputs.groups.data() + row * (k / 32));
    const auto actual = run(scalar_kernels(), w.matrix, inputs.view, 0, (n + 15) / 16, false);
    // A term's factor d * scale (or scale * sum) is rounded once, then every term passes all later
    // sums: one a group, two with a minimum.
    const double roundings =
        1 + static_cast<double>(k / 32) * (format == WeightFormat::q4_1 ? 2 : 1);
    for (int64_t i = 0; i < m * n; ++i) {
      const auto at = static_cast<size_t>(i);
      const double bound = roundings * std::ldexp(1.0, -24) * magnitude[at] * (1 + 1e-6);
      const double error = std::abs(actual[static_cast<size_t>(i / n * (n + 5) + i % n)] - y[at]);
      if (magnitude[at] > 0) worst = std::max(worst, error / bound);
      CHECK(error <= bound);
    }
    ++count;
  }
  CHECK(count == 2);
  MESSAGE("worst error is " << worst << " of the bound");
}

TEST_CASE(
    "given a panel with missing rows, when packed, then they are zero and the rest is not lost") {
  for (const WeightFormat format : kFormats) {
    const auto source = file_matrix(format, 19, 64, 4, Codes::random);
    const auto wider = [&] {  // the same rows, the missing ones zero in the file
      auto bytes = source;
      bytes.resize(source.size() / 19 * 32);
      return bytes;
    }();
    const Packed some = pack(format, source, 19, 64);
    const Packed all = pack(format, wider, 32, 64);
    CHECK(std::memcmp(some.matrix.panels, all.matrix.panels, 2 * some.matrix.panel_bytes) == 0);
  }
}

TEST_CASE("given a scale that is NaN or infinite, when packed, then it is refused") {
  for (const uint16_t bad : {0x7C00, 0xFC00, 0x7E00, 0x7C01}) {
    for (const WeightFormat format : {WeightFormat::f16, WeightFormat::q4_1, WeightFormat::q8_0}) {
      const auto f = static_cast<size_t>(format);
      auto source = file_matrix(format, 16, 64, 1, Codes::random);
      const size_t row_bytes = 64 / static_cast<size_t>(kBlockColumns[f]) * kBlockBytes[f];
      std::memcpy(source.data() + 7 * row_bytes + kBlockBytes[f], &bad, 2);
      std::vector<std::byte> panel(packed_panel_bytes(format, 64));
      CHECK_FALSE(pack_panel(format, source.data(), row_bytes, 16, 64, 0, panel.data()));
    }
  }
  auto source = file_matrix(WeightFormat::q4_1, 1, 32, 1, Codes::random);
  const uint16_t infinite = 0x7C00;
  std::memcpy(source.data() + 2, &infinite, 2);  // the minimum
  std::vector<std::byte> panel(packed_panel_bytes(WeightFormat::q4_1, 32));
  CHECK_FALSE(pack_panel(WeightFormat::q4_1, source.data(), 20, 1, 32, 0, panel.data()));
}

TEST_CASE("given packed weights, when their size is counted, then it is the file's within 6%") {
  for (const WeightFormat format : kFormats) {
    const auto f = static_cast<size_t>(format);
    for (const int64_t columns : {576, 1536, 4096}) {
      const double file = static_cast<double>(columns / kBlockColumns[f]) *
                          static_cast<double>(kBlockBytes[f]) * 16;
      CHECK(static_cast<double>(packed_panel_bytes(format, columns)) <= file * 1.06);
      CHECK(packed_panel_bytes(format, columns) % 64 == 0);
    }
  }
}
