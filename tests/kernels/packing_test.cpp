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
  for (const WeightFormat format : all_formats())
    if (name == format_name(format)) return format;
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
    const auto columns = static_cast<int64_t>(expected.size());
    REQUIRE(columns % format_columns(format) == 0);
    // The block at every place of a panel of 3 columns of blocks, among copies of another one.
    const std::vector<std::byte> other(block.size(), std::byte{0x11});
    for (int64_t row = 0; row < 18; ++row) {
      const int64_t column = row % 3;
      std::vector<std::byte> source;
      for (int64_t i = 0; i < 18 * 3; ++i) {
        const auto& here = i == row * 3 + column ? block : other;
        source.insert(source.end(), here.begin(), here.end());
      }
      const Packed w = pack(format, source, 18, 3 * columns);
      std::vector<float> values(static_cast<size_t>(3 * columns));
      unpack_row(w.matrix, row, values.data());
      for (size_t i = 0; i < expected.size(); ++i) {
        INFO(line[1] << " column " << i);
        REQUIRE(bits_of(values[static_cast<size_t>(column * columns) + i]) == bits_of(expected[i]));
      }
    }
    ++counts[line[1]];
  }
  for (const WeightFormat format : all_formats()) {
    MESSAGE(std::string(format_name(format)) << ": " << counts[format_name(format)] << " blocks");
    CHECK(counts[format_name(format)] >= 8);
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
    for (int64_t row = 0; row < m; ++row) {
      std::copy_n(x.data() + row * k, k, inputs.values.data() + row * inputs.view.values_stride);
      inputs.quantize(row);
    }
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
  for (const WeightFormat format : all_formats()) {
    const int64_t columns = std::max<int64_t>(64, format_columns(format));
    const auto source = file_matrix(format, 19, columns, 4, Codes::random);
    const auto wider = [&] {  // the same rows, the missing ones zero in the file
      auto bytes = source;
      bytes.resize(source.size() / 19 * 32);
      return bytes;
    }();
    const Packed some = pack(format, source, 19, columns);
    const Packed all = pack(format, wider, 32, columns);
    std::vector<float> row(static_cast<size_t>(columns)), same_row(row);
    for (int64_t n = 0; n < 32; ++n) {
      unpack_row(some.matrix, n, row.data());
      unpack_row(all.matrix, n, same_row.data());
      CHECK(std::equal(row.begin(), row.end(), same_row.begin()));
      if (n >= 19) CHECK(std::all_of(row.begin(), row.end(), [](float v) { return v == 0; }));
    }
  }
}

TEST_CASE("given a scale that is NaN or infinite, when packed, then it is refused") {
  const int64_t columns = 512;
  const auto refused = [&](WeightFormat format, const std::vector<std::byte>& source) {
    std::vector<std::byte> panel(packed_panel_bytes(format, columns));
    return !pack_panel(format, source.data(), file_row_bytes(format, columns), 16, columns, 0,
                       panel.data());
  };
  for (const WeightFormat format : all_formats()) {
    INFO(format_name(format));
    const FileBlock& block = file_block(format);
    const auto source = file_matrix(format, 16, columns, 1, Codes::random);
    CHECK_FALSE(refused(format, source));
    const size_t at = 7 * file_row_bytes(format, columns) + block.bytes;
    std::vector<size_t> places = block.halves;
    if (input_form(format) == InputForm::floats) places = {block.bytes - 2};
    for (const size_t place : places) {
      for (const uint16_t bad : {0x7C00, 0xFC00, 0x7E00, 0x7C01, 0x7F80, 0xFF80}) {
        const bool is_half = input_form(format) != InputForm::floats || format == WeightFormat::f16;
        if (is_half ? (bad & 0x7C00) != 0x7C00 : (bad & 0x7F80) != 0x7F80) continue;
        auto faulty = source;
        std::memcpy(faulty.data() + at + place, &bad, 2);
        CHECK(refused(format, faulty));
      }
    }
    if (format == WeightFormat::mxfp4) {
      auto faulty = source;
      faulty[at] = std::byte{0xFF};
      CHECK(refused(format, faulty));
    }
    if (format == WeightFormat::iq1_m) {
      auto faulty = source;
      faulty[at + 55] = std::byte{0x7C};  // the highest nibbles of d
      faulty[at + 53] = std::byte{0xC0};
      CHECK(refused(format, faulty));
    }
  }
}

TEST_CASE("given packed weights, when their size is counted, then it is the file's within 6%") {
  for (const WeightFormat format : all_formats()) {
    for (const int64_t columns : {768, 1536, 4096}) {
      const double file = static_cast<double>(file_row_bytes(format, columns)) * 16;
      CHECK(static_cast<double>(packed_panel_bytes(format, columns)) <= file * 1.06);
      CHECK(packed_panel_bytes(format, columns) % 64 == 0);
    }
  }
}
