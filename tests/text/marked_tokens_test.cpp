#include "core/text/marked_tokens.h"

#include <algorithm>

#include "tests/text/fixtures.h"

using namespace kvasir;

namespace {

using Found = std::vector<std::vector<int64_t>>;  // offset, length, id

Found found(const std::vector<std::string>& spellings, const std::string& text) {
  std::vector<MarkedTokens::Spelling> list;
  for (size_t i = 0; i < spellings.size(); ++i)
    list.push_back({spellings[i], static_cast<int32_t>(i)});
  Found result;
  for (const auto& match : MarkedTokens(list).find_all(text))
    result.push_back({match.offset, match.length, match.id});
  return result;
}

/// By the definition: at each place the longest spelling that stands there, then on behind it.
Found found_by_definition(const std::vector<std::string>& spellings, const std::string& text) {
  Found result;
  for (size_t at = 0; at < text.size();) {
    size_t length = 0;
    int64_t id = -1;
    for (size_t i = 0; i < spellings.size(); ++i) {
      if (spellings[i].size() > length &&
          text.compare(at, spellings[i].size(), spellings[i]) == 0) {
        length = spellings[i].size();
        id = static_cast<int64_t>(i);
      }
    }
    if (length > 0) result.push_back({static_cast<int64_t>(at), static_cast<int64_t>(length), id});
    at += std::max<size_t>(length, 1);
  }
  return result;
}

}  // namespace

TEST_CASE("given spellings that overlap, when searched, then the leftmost and longest count") {
  const std::vector<std::string> spellings = {"<|end|>", "<|end|>less", "|end|", "d|>x"};
  CHECK(found(spellings, "a<|end|>") == Found{{1, 7, 0}});
  CHECK(found(spellings, "<|end|>less") == Found{{0, 11, 1}});
  CHECK(found(spellings, "<|end|>les") == Found{{0, 7, 0}});
  CHECK(found(spellings, "<|end|") == Found{{1, 5, 2}});
  CHECK(found(spellings, "<|end|>x") == Found{{0, 7, 0}});
  CHECK(found(spellings, "d|>x<|end|>") == Found{{0, 4, 3}, {4, 7, 0}});
  CHECK(found(spellings, "nothing").empty());
  CHECK(found(spellings, "").empty());
  CHECK(found({}, "text").empty());
  CHECK(found({""}, "text").empty());
}

TEST_CASE(
    "given random spellings and texts, when searched, then the matches are the definition's") {
  std::mt19937 random(1);
  const auto random_text = [&](size_t least, size_t most) {
    std::string text;
    for (size_t n = least + random() % (most - least + 1); n > 0; --n)
      text += "ab\xC3"[random() % 3];
    return text;
  };
  size_t n_matches = 0;
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::string> spellings;
    for (size_t n = random() % 6; n > 0; --n) spellings.push_back(random_text(1, 6));
    const std::string text = random_text(0, 40);
    const auto right = found_by_definition(spellings, text);
    REQUIRE(found(spellings, text) == right);
    n_matches += right.size();
  }
  CHECK(n_matches > 10000);
}

TEST_CASE(
    "given a spelling of 100,000 letters that nearly matches everywhere, when searched, then time "
    "is linear") {
  // Trying each place would take 10^6 x 10^5 steps.
  const auto matches = found({std::string(100000, 'a') + "b", "a"}, std::string(1000000, 'a'));
  CHECK(matches.size() == 1000000);
}
