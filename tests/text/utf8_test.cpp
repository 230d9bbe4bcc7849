#include "core/text/utf8.h"

#include "tests/text/fixtures.h"

using namespace kvasir;

TEST_CASE("given bytes, when looking for invalid UTF-8, then the offset is Python's") {
  const auto cases = test::read_fixture("utf8.json");
  CHECK(cases.size() > 300);
  for (const auto& entry : cases) {
    CAPTURE(entry[0].get<std::string>());
    const auto fault = find_invalid_utf8(test::unhex(entry[0].get<std::string>()));
    if (entry[1].is_null()) {
      CHECK_FALSE(fault.has_value());
    } else {
      CHECK(fault == entry[1].get<size_t>());
    }
  }
}

TEST_CASE(
    "given bytes in any pieces, when assembled, then invalid parts become what Python makes") {
  std::mt19937 random(1);
  for (const auto& entry : test::read_fixture("utf8.json")) {
    const std::string bytes = test::unhex(entry[0].get<std::string>());
    CAPTURE(entry[0].get<std::string>());
    for (int round = 0; round < 8; ++round) {
      Utf8Assembler assembler;
      std::string text;
      for (const auto& piece : test::cut_at_random(bytes, random)) {
        const std::string delta = assembler.push(piece);
        CHECK_FALSE(find_invalid_utf8(delta).has_value());
        text += delta;
      }
      CHECK(text + assembler.finish() == entry[2].get<std::string>());
    }
  }
}

TEST_CASE("given a character in four pieces, when assembled, then nothing comes before its end") {
  Utf8Assembler assembler;
  CHECK(assembler.push("\xF0").empty());
  CHECK(assembler.push("\x9F\x98").empty());
  CHECK(assembler.push("\x80!") == "\xF0\x9F\x98\x80!");
  CHECK(assembler.finish().empty());
}
