#include "core/files/gguf.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "core/files/atomic_file.h"
#include "core/text/tokenizer.h"
#include "tests/support/gguf_writer.h"

using namespace kvasir;  // NOLINT
namespace fs = std::filesystem;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::string error_of(const std::string& bytes) {
  auto header = gguf::Header::parse(bytes_of(bytes));
  return header ? "" : header.error().message;
}

test::GgufWriter small_file() {
  test::GgufWriter w;
  w.text("general.architecture", "llama");
  w.u32("a.count", 7);
  w.f32("a.ratio", 0.5F);
  w.boolean("a.flag", true);
  w.texts("a.names", {"x", "", "long name"});
  w.ints("a.ids", {1, -2, 3});
  w.tensor("first", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  w.tensor("second", {3}, {9, 10, 11});
  return w;
}

/// A folder that is removed at the end of the test.
struct Folder {
  Folder() : path(fs::temp_directory_path() / ("kvasir-files-" + std::to_string(getpid()))) {
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

/// Case T16: what each malformed file's error must name.
const std::map<std::string, std::string> kFaults = {
    {"dim_wrap", "'t'"},
    {"dim_zero", "'t'"},
    {"dim_neg", "'t'"},
    {"ndims_huge", "'t'"},
    {"type_unknown", "'t'"},
    {"blk_misfit", "'t'"},
    {"off_past_end", "'t'"},
    {"off_wrap", "'t'"},
    {"off_misaligned", "'t'"},
    {"truncated", "'t'"},
    {"dup_tensor", "'t'"},
    {"kv_count_huge", "metadata"},
    {"tensor_count_huge", "tensors"},
    {"str_len_huge", "general.architecture"},
    {"arr_len_wrap", "a.b"},
    {"arr_nested", "a.b"},
    {"key_empty", "empty name"},
    {"dup_key", "general.architecture"},
    {"align_zero", "general.alignment"},
    {"align_three", "general.alignment"},
    {"bad_bool", "a.b"},
    {"magic_html", "not a GGUF file"},
    {"big_endian", "big-endian"},
    {"empty", "empty"},
    {"eos_out_of_vocab", "tokenizer.ggml.eos_token_id"},
    {"default_ids_out_of_vocab", "tokenizer.ggml."},
    {"scores_short", "tokenizer.ggml.scores"},
    {"byte_token_neg", "tokenizer.ggml.tokens"},
    {"byte_token_text", "tokenizer.ggml.tokens"},
    {"score_nan", "tokenizer.ggml.scores"},
};

}  // namespace

TEST_CASE("given a well-formed file, when parsed, then every key and tensor is as written") {
  const std::string bytes = small_file().bytes();
  auto header = gguf::Header::parse(bytes_of(bytes));
  REQUIRE_MESSAGE(header, (header ? "" : header.error().message));
  CHECK(header->version() == 3);
  CHECK(*header->get_string("general.architecture") == "llama");
  CHECK(*header->get_int("a.count") == 7);
  CHECK(*header->get_float("a.ratio") == 0.5);
  CHECK(*header->get_bool("a.flag"));
  CHECK((*header->get_strings("a.names"))[2] == "long name");
  CHECK(*header->get_ints("a.ids") == std::vector<int32_t>{1, -2, 3});
  const auto* tensor = header->find_tensor("second");
  REQUIRE(tensor != nullptr);
  CHECK(tensor->shape[0] == 3);
  float value;
  std::memcpy(&value, tensor->data + 8, sizeof(value));
  CHECK(value == 11);
  CHECK(header->find_tensor("third") == nullptr);
}

TEST_CASE("given version 2, when parsed, then it is read the same; 1 and 4 are refused") {
  std::string bytes = small_file().bytes();
  for (const uint32_t version : {1U, 2U, 4U}) {
    std::memcpy(bytes.data() + 4, &version, 4);
    CHECK(error_of(bytes).empty() == (version == 2));
  }
}

TEST_CASE("given keys of another type, when fetched, then the error names key and types") {
  const std::string bytes = small_file().bytes();
  auto header = gguf::Header::parse(bytes_of(bytes));
  REQUIRE(header);
  const auto message = [](const auto& result) {
    REQUIRE_FALSE(result);
    return result.error().message;
  };
  CHECK(message(header->get_int("a.names")).find("a.names") != std::string::npos);
  CHECK(message(header->get_string("a.count")).find("a.count") != std::string::npos);
  CHECK(message(header->get_float("a.flag")).find("a.flag") != std::string::npos);
  CHECK(message(header->get_bool("missing")).find("missing") != std::string::npos);
  CHECK(message(header->int_or("a.ratio", 3)).find("a.ratio") != std::string::npos);
  CHECK(*header->int_or("missing", 3) == 3);
  CHECK(message(header->get_strings("a.ids")).find("a.ids") != std::string::npos);
}

TEST_CASE("given a file cut anywhere, when parsed, then it is refused") {
  const std::string bytes = small_file().bytes();
  // The last tensor's 12 bytes end before the padding of the file's end.
  for (size_t length = 0; length + 20 < bytes.size(); ++length)
    REQUIRE_FALSE(error_of(bytes.substr(0, length)).empty());
}

TEST_CASE("given any byte changed, when parsed, then nothing breaks and views stay inside") {
  const std::string original = small_file().bytes();
  size_t refused = 0;
  for (size_t i = 0; i < original.size(); ++i) {
    for (const int change : {0x01, 0x80, 0xFF}) {
      std::string bytes = original;
      bytes[i] = static_cast<char>(bytes[i] ^ change);
      auto header = gguf::Header::parse(bytes_of(bytes));
      if (!header) {
        ++refused;
        REQUIRE_FALSE(header.error().message.empty());
        continue;
      }
      const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
      for (const auto& tensor : header->tensors()) {
        REQUIRE(tensor.data >= begin);
        REQUIRE(tensor.data + tensor.size_bytes <= begin + bytes.size());
      }
    }
  }
  CHECK(refused > 300);
}

TEST_CASE("given the malformed files, when read, then each error names what is wrong") {
  const Folder folder;
  const std::string script = KVASIR_MALFORMED_SCRIPT;
  const std::string command =
      "cd '" + folder.path.string() + "' && python3 '" + script + "' > made.txt";
  REQUIRE(std::system(command.c_str()) == 0);
  size_t seen = 0;
  for (const auto& [name, part] : kFaults) {
    const auto path = (folder.path / "out" / (name + ".gguf")).string();
    REQUIRE(fs::exists(path));
    CAPTURE(name);
    auto file = gguf::File::open(path);
    std::string message = file ? "" : file.error().message;
    if (file) {
      auto tokenizer = Tokenizer::from_gguf((*file)->header);
      REQUIRE_FALSE(tokenizer);
      message = tokenizer.error().message;
    }
    CAPTURE(message);
    CHECK(message.find(part) != std::string::npos);
    ++seen;
  }
  CHECK(seen == 30);
  CHECK(gguf::File::open((folder.path / "out" / "ok_ref.gguf").string()));
}

TEST_CASE("given what is not a regular file, when opened, then the error says what it is") {
  const Folder folder;
  const auto message = [](const std::string& path) {
    auto file = MappedFile::open(path);
    REQUIRE_FALSE(file);
    return file.error().message;
  };
  CHECK(message(folder.path.string()).find("folder") != std::string::npos);
  CHECK(message((folder.path / "none").string()).find("none") != std::string::npos);
  CHECK(message("/dev/null").find("/dev/null") != std::string::npos);
}

TEST_CASE("given an atomic file, when it is not committed, then the old file stays") {
  const Folder folder;
  const auto path = (folder.path / "file").string();
  const auto contents = [&] {
    std::ifstream file(path);
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  };
  {
    auto file = AtomicFile::create(path);
    REQUIRE(file);
    REQUIRE(file->write("old"));
    CHECK_FALSE(fs::exists(path));
    REQUIRE(file->commit());
  }
  CHECK(contents() == "old");
  {
    auto file = AtomicFile::create(path);
    REQUIRE(file);
    REQUIRE(file->write("new and longer"));
  }
  CHECK(contents() == "old");
  CHECK(std::distance(fs::directory_iterator(folder.path), {}) == 1);  // no temporary file is left
  const auto refused = AtomicFile::create((folder.path / "none" / "file").string());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("none") != std::string::npos);
}
