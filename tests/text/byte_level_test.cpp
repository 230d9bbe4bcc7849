#include "core/text/byte_level.h"

#include <set>

#include "core/text/utf8.h"
#include "tests/text/fixtures.h"

using namespace kvasir;

TEST_CASE(
    "given every byte, when spelled, then the spelling is different, UTF-8 and spells it back") {
  std::set<std::string> all;
  for (size_t byte = 0; byte < 256; ++byte) {
    const std::string& spelling = byte_spellings()[byte];
    CHECK_FALSE(find_invalid_utf8(spelling).has_value());
    CHECK(spelled_bytes(spelling) == std::string(1, static_cast<char>(byte)));
    all.insert(spelling);
  }
  CHECK(all.size() == 256);
}

TEST_CASE("given known bytes, when spelled, then it is GPT-2's character") {
  CHECK(byte_spellings()['A'] == "A");
  CHECK(byte_spellings()[' '] == "\u0120");
  CHECK(byte_spellings()['\n'] == "\u010A");
  CHECK(byte_spellings()[0x00] == "\u0100");
  CHECK(byte_spellings()[0x7F] == "\u0121");
  CHECK(byte_spellings()[0xAD] == "\u0143");  // the last of the 68 that are not printable
  CHECK(byte_spellings()[0xFF] == "\u00FF");
}

TEST_CASE("given characters that spell no byte, when read, then nothing comes") {
  for (const char* entry :
       {" ", "a b", "\n", "\u0144", "\u00AD", "\u6F22", "\xC3", "\xFF", "a\xC3"}) {
    CAPTURE(entry);
    CHECK_FALSE(spelled_bytes(entry).has_value());
  }
  CHECK(spelled_bytes("") == "");
}

TEST_CASE("given byte tokens, when read, then only exact spellings count") {
  CHECK(byte_of_token("<0x00>") == 0x00);
  CHECK(byte_of_token("<0xfF>") == 0xFF);
  for (const char* text :
       {"<0x-1>", "<0xZZ>", "<0x1>", "<0x123>", "<0X41>", "0x41", "<0x41> ", "<0x4 >", ""}) {
    CAPTURE(text);
    CHECK_FALSE(byte_of_token(text).has_value());
  }
}
