// The reader on the corpus that make_npz.py makes (its good files were read by numpy.load), and the
// writer by the reader; tests/cli/perplexity_test.py reads the writer's files with Python's
// zipfile.
#include "core/files/npz.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "core/files/crc32.h"
#include "core/files/mapped_file.h"

using namespace kvasir;  // NOLINT
namespace fs = std::filesystem;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The first error of reading an archive and its two arrays; "" when all is well.
std::string fault(const std::string& bytes) {
  const auto archive = npz::Archive::parse(bytes_of(bytes));
  if (!archive) return archive.error().message;
  for (const char* name : {"tokens", "logits"}) {
    if (const auto array = archive->array(name); !array) return array.error().message;
    if (const auto s = archive->check_sum(name); !s) return s.error().message;
  }
  return "";
}

}  // namespace

TEST_CASE(
    "given the corpus, when each file is read, then it is good or the error says what is wrong") {
  // File -> what its error must name.
  const std::map<std::string, std::string> wrong = {
      {"ok_empty", "no array 'tokens' in it, only nothing"},
      {"zip64_end_outside", "zip64 record at offset 9223372036854775808"},
      {"zip64_huge_directory", "18446744073709551615 bytes"},
      {"nothing", "not an .npz archive"},
      {"short", "not an .npz archive"},
      {"text", "not an .npz archive"},
      {"truncated", "not an .npz archive"},
      {"many_entries", "65535 entries"},
      {"directory_outside", "offset 4294967280"},
      {"directory_not_one", "directory is broken at offset"},
      {"long_name", "directory is broken at offset"},
      {"encrypted", "'tokens.npy' is encrypted"},
      {"sizes_differ", "'tokens.npy'"},
      {"size_outside", "1000000000 bytes"},
      {"size_in_missing_extra", "directory is broken at offset"},
      {"local_elsewhere", "does not begin at offset 3"},
      {"local_outside", "does not begin at offset 4294967280"},
      {"local_long_name", "'tokens.npy'"},
      {"deflated", "compressed (method 8)"},
      {"same_name", "two members 'logits.npy'"},
      {"wrong_sum", "checksum"},
      {"npy_no_magic", "'logits' is not a NumPy array"},
      {"npy_short", "'logits' is not a NumPy array"},
      {"npy_empty", "'logits' is not a NumPy array"},
      {"npy_version_9", "version 9"},
      {"npy_header_outside", "header of 65535 bytes"},
      {"npy_fortran", "Fortran order"},
      {"npy_f8", "'<f8'"},
      {"npy_big_endian", "'>f4'"},
      {"npy_object", "'|O'"},
      {"npy_too_short", "23 bytes of data"},
      {"npy_too_long", "25 bytes of data"},
      {"npy_wraps", "shape (4294967296, 4294967296)"},
      {"npy_scalar", ""},
      {"npy_no_elements", ""},
  };
  int good = 0, bad = 0;
  for (const auto& entry : fs::directory_iterator(KVASIR_NPZ_CORPUS)) {
    const std::string name = entry.path().stem().string();
    CAPTURE(name);
    const std::string message = fault(read(entry.path()));
    const auto expected = wrong.find(name);
    const bool is_good = (name.rfind("ok", 0) == 0 && expected == wrong.end()) ||
                         (expected != wrong.end() && expected->second.empty());
    CHECK_MESSAGE(message.empty() == is_good, message);
    if (expected != wrong.end())
      CHECK_MESSAGE(message.find(expected->second) != std::string::npos, message);
    if (!is_good && expected == wrong.end())  // the rest are broken headers
      CHECK_MESSAGE(message.find("array 'logits' has a header that is not") == 0, message);
    (is_good ? good : bad)++;
  }
  CHECK(good >= 8);
  CHECK(bad >= 35);
}

TEST_CASE(
    "given a good archive, when any one byte is changed, then reading ends, and cut it is "
    "refused") {
  const std::string good = read(fs::path(KVASIR_NPZ_CORPUS) / "ok.npz");
  REQUIRE(fault(good).empty());
  for (size_t i = 0; i < good.size(); ++i) {
    for (const char flip : {'\x01', '\x80', '\xFF'}) {
      std::string changed = good;
      changed[i] = static_cast<char>(changed[i] ^ flip);
      (void)fault(changed);  // under the sanitizers: no byte outside is read
    }
    CHECK_FALSE(fault(good.substr(0, i)).empty());
  }
}

TEST_CASE(
    "given arrays written in pieces, when read again, then shapes, types and bytes are the same") {
  const auto path = fs::temp_directory_path() / ("kvasir-npz-" + std::to_string(getpid()) + ".npz");
  auto writer = npz::Writer::create(path.string());
  REQUIRE(writer);
  const std::vector<int32_t> tokens = {3, 1, -4};
  const std::vector<float> logits = {0.5F, -1, 2, 3, 4, 5};
  const int64_t one[] = {3}, two[] = {3, 2}, none[] = {0, 5};
  REQUIRE(writer->begin("tokens", npy::Element::i32, one));
  REQUIRE(writer->write(std::as_bytes(std::span(tokens))));
  REQUIRE(writer->begin("logits", npy::Element::f32, two));
  for (const float& x : logits) REQUIRE(writer->write(std::as_bytes(std::span(&x, 1))));
  REQUIRE(writer->begin("none", npy::Element::f16, none));
  CHECK_FALSE(fs::exists(path));
  REQUIRE(writer->finish());
  {
    const auto file = MappedFile::open(path.string());
    REQUIRE(file);
    const auto archive = npz::Archive::parse(file->bytes());
    REQUIRE_MESSAGE(archive, (archive ? "" : archive.error().message));
    CHECK(archive->members().size() == 3);
    const auto array = archive->array("logits");
    REQUIRE(array);
    CHECK(array->element == npy::Element::f32);
    CHECK(array->shape == std::vector<int64_t>{3, 2});
    CHECK(std::memcmp(array->data.data(), logits.data(), 24) == 0);
    CHECK(archive->array("none")->data.empty());
    for (const char* name : {"tokens", "logits", "none"}) CHECK(archive->check_sum(name));
  }
  fs::remove(path);
}

TEST_CASE("given too many or too few bytes, when written, then it is refused and no file is left") {
  const auto path = fs::temp_directory_path() / ("kvasir-npz-" + std::to_string(getpid()) + ".npz");
  const int64_t shape[] = {2}, huge[] = {INT64_MAX, INT64_MAX}, negative[] = {-1};
  {
    auto writer = npz::Writer::create(path.string());
    REQUIRE(writer);
    const std::vector<std::byte> bytes(9);
    CHECK_FALSE(writer->write(bytes));  // to no array
    REQUIRE(writer->begin("a", npy::Element::f32, shape));
    CHECK_FALSE(writer->write(bytes));
    REQUIRE(writer->write(std::span(bytes).first(7)));
    CHECK_FALSE(writer->begin("b", npy::Element::f32, shape));
    const auto s = writer->finish();
    REQUIRE_FALSE(s);
    CHECK(s.error().message.find("'a.npy' lacks 1 bytes") != std::string::npos);
    auto other = npz::Writer::create(path.string());
    REQUIRE(other);
    CHECK_FALSE(other->begin("a", npy::Element::f32, huge));
    CHECK_FALSE(other->begin("a", npy::Element::f32, negative));
  }
  CHECK_FALSE(fs::exists(path));
  for (const auto& entry : fs::directory_iterator(fs::temp_directory_path()))
    CHECK(entry.path().string().rfind(path.string(), 0) != 0);
}

TEST_CASE("given the check value of CRC-32, when summed in parts, then it is 0xCBF43926") {
  const std::string text = "123456789";  // the catalogue's check input (ISO 3309, V.42, PKZIP)
  CHECK(crc32(bytes_of(text)) == 0xCBF43926);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const uint32_t first = crc32(bytes_of(text).first(cut));
    CHECK(crc32(bytes_of(text).subspan(cut), first) == 0xCBF43926);
  }
  std::string longer;
  for (int i = 0; i < 100; ++i) longer += text;
  uint32_t by_bytes = 0;
  for (size_t i = 0; i < longer.size(); ++i)
    by_bytes = crc32(bytes_of(longer).subspan(i, 1), by_bytes);
  CHECK(crc32(bytes_of(longer)) == by_bytes);
  CHECK(crc32({}) == 0);
}
