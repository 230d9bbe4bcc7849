// Case T20: stop strings and UTF-8 over fake token streams.
#include "core/text/text_stream.h"

#include <algorithm>

#include "tests/text/fixtures.h"

using namespace kvasir;

namespace {

const std::string kReplacement = "\xEF\xBF\xBD";

/// All deltas joined; `finish` as at the end of a generation.
std::string joined(TextStream& stream, const std::vector<std::string>& pieces) {
  std::string text;
  for (const auto& piece : pieces) text += stream.push(piece);
  return text + stream.finish();
}

/// By the definition: cut before the stop string that ends first (the longest of several there).
std::string cut_by_definition(const std::string& bytes, const std::vector<std::string>& stops) {
  for (size_t end = 0; end <= bytes.size(); ++end) {
    size_t longest = 0;
    for (const auto& stop : stops) {
      if (end >= stop.size() && bytes.compare(end - stop.size(), stop.size(), stop) == 0)
        longest = std::max(longest, stop.size());
    }
    if (longest > 0) return bytes.substr(0, end - longest);
  }
  return bytes;
}

/// The bytes as text, by the assembler alone (which has tests of its own).
std::string as_text(const std::string& bytes) {
  Utf8Assembler assembler;
  std::string text = assembler.push(bytes);
  return text + assembler.finish();
}

}  // namespace

TEST_CASE("given a stop string over three pieces, when streamed, then it never shows") {
  TextStream stream({"END"});
  CHECK(joined(stream, {"He", "llo E", "N", "D", "x"}) == "Hello ");
  CHECK(stream.stopped());
  CHECK(stream.stop_string() == "END");
}

TEST_CASE("given the beginning of a stop string, when it goes on otherwise, then it is given out") {
  TextStream stream({"ENDING"});
  CHECK(stream.push("EN").empty());
  CHECK(stream.push("D of day") == "END of day");
  CHECK(stream.finish().empty());
  CHECK_FALSE(stream.stopped());
}

TEST_CASE("given held text, when the generation ends, then it is given out") {
  TextStream stream({"assistant"});
  CHECK(joined(stream, {"ple", "as"}) == "pleas");
  CHECK_FALSE(stream.stopped());
}

TEST_CASE("given a match that overlaps a failed one, when streamed, then it stops") {
  TextStream stream({"abac", "babc"});
  CHECK(joined(stream, {"abab", "c"}) == "a");
  CHECK(stream.stop_string() == "babc");
}

TEST_CASE("given an emoji in three pieces, when streamed, then it comes whole") {
  TextStream stream;
  CHECK(stream.push("\xF0").empty());
  CHECK(stream.push("\x9F\x98").empty());
  CHECK(stream.push("\x80") == "\xF0\x9F\x98\x80");
  CHECK(stream.push("!") == "!");
  CHECK(stream.finish().empty());
}

TEST_CASE(
    "given an unfinished character, when the generation ends, then one U+FFFD stands for it") {
  TextStream stream;
  CHECK(joined(stream, {"\xF0\x9F"}) == kReplacement);
}

TEST_CASE("given a byte that is no UTF-8, when streamed, then U+FFFD stands for it") {
  TextStream stream;
  CHECK(joined(stream, {"\xFF", "a"}) == kReplacement + "a");
}

TEST_CASE("given a stop string of one character in two pieces, when streamed, then nothing leaks") {
  TextStream stream({"\xC3\xA9"});
  CHECK(stream.push("\xC3").empty());
  CHECK(stream.push("\xA9").empty());
  CHECK(stream.stopped());
  CHECK(stream.push("more").empty());
  CHECK(stream.finish().empty());
}

TEST_CASE(
    "given stop strings that end together, when one push holds both, then the longest counts") {
  TextStream stream({"c", "abc", "", "bc"});
  CHECK(joined(stream, {"xabc"}) == "x");
  CHECK(stream.stop_string() == "abc");
}

TEST_CASE("given an unfinished character before a stop, when streamed, then U+FFFD stands for it") {
  TextStream stream({"END"});
  CHECK(joined(stream, {"a\xE2\x82", "END"}) == "a" + kReplacement);
}

TEST_CASE(
    "given random bytes, stops and pieces, when streamed, then the text is that of one push") {
  std::mt19937 random(1);
  const auto random_bytes = [&](size_t most) {
    // Few letters: long borders ("aabaa" in "aabaaa"), or the parts of characters.
    const std::string alphabet = random() % 3 > 0 ? "aab" : "aab\xC3\xA9\xF0";
    std::string bytes;
    for (size_t n = random() % (most + 1); n > 0; --n)
      bytes += alphabet[random() % alphabet.size()];
    return bytes;
  };
  int n_stopped = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops;
    for (size_t n = random() % 4; n > 0; --n) stops.push_back(random_bytes(9));
    std::erase(stops, "");
    const std::string bytes = random_bytes(40);
    const std::string right = cut_by_definition(bytes, stops);
    TextStream stream(stops);
    const std::string text = joined(stream, test::cut_at_random(bytes, random));
    n_stopped += stream.stopped();
    REQUIRE(text == as_text(right));
    REQUIRE(stream.stopped() == (right != bytes));
  }
  CHECK(n_stopped > 2000);
  CHECK(n_stopped < 18000);
}

TEST_CASE("given any piece, when pushed, then all that cannot begin a stop string is given out") {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    const std::vector<std::string> stops = {"abacab", "bba"};
    std::string bytes;
    for (int i = 0; i < 20; ++i) bytes += "abc"[random() % 3];
    if (cut_by_definition(bytes, stops) != bytes) continue;
    TextStream stream(stops);
    std::string seen;
    std::string given;
    for (const char byte : bytes) {
      seen += byte;
      given += stream.push(std::string_view(&byte, 1));
      size_t held = 0;
      for (const auto& stop : stops) {
        for (size_t n = 1; n < stop.size(); ++n)
          if (seen.ends_with(std::string_view(stop).substr(0, n))) held = std::max(held, n);
      }
      REQUIRE(given == seen.substr(0, seen.size() - held));
    }
  }
}

TEST_CASE(
    "given a long periodic stop string, when a million near misses come, then time is linear") {
  // A comparison of every suffix would take 10^6 x 10^4 / 2 steps: minutes.
  TextStream stream({std::string(10000, 'a') + "b"});
  const std::string text(1000000, 'a');
  CHECK(stream.push(text).size() == text.size() - 10000);
  CHECK(stream.finish().size() == 10000);
}
