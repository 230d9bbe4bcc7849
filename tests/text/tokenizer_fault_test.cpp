// Vocabularies of byte-level BPE that make no sense.
#include <algorithm>

#include "tests/text/fixtures.h"

using namespace kvasir;

namespace {

test::OwnedVocabulary small() {
  return test::small_vocabulary(test::read_fixture("small_bpe.json"), "gpt-2");
}

/// Says what the message was where a part is missing.
bool names(const std::string& message, std::initializer_list<std::string> parts) {
  const bool all = std::all_of(parts.begin(), parts.end(), [&](const auto& part) {
    return message.find(part) != std::string::npos;
  });
  if (!all) MESSAGE(message);
  return all;
}

std::string fault_of_merge(const std::string& merge) {
  auto owned = small();
  auto merges = owned.storage;
  merges.push_back(merge);
  owned.set_merges(merges);
  return test::fault_of(owned);
}

}  // namespace

TEST_CASE("given merges that make no sense, when read, then the error names key, entry and fault") {
  const std::string key = "tokenizer.ggml.merges";
  const std::string rank = std::to_string(small().storage.size());
  CHECK(names(fault_of_merge("ab"), {key, rank, "'ab'", "no space"}));
  CHECK(names(fault_of_merge(" a"), {key, rank, "empty part"}));
  CHECK(names(fault_of_merge("a "), {key, rank, "empty part"}));
  CHECK(names(fault_of_merge("q q"), {key, rank, "'q q'", "not in the vocabulary"}));
  CHECK(names(fault_of_merge("qq a"), {key, rank, "'qq a'", "not in the vocabulary"}));
  CHECK(names(fault_of_merge("a b c"), {key, rank, "spells no byte"}));
  CHECK(names(fault_of_merge("\u6F22 a"), {key, rank, "spells no byte"}));
  CHECK(names(fault_of_merge(small().storage[3]), {key, rank, "second time"}));
}

TEST_CASE("given two equal entries, when read, then the error names both") {
  auto owned = small();
  owned.vocabulary.tokens[300] = owned.vocabulary.tokens[40];
  // The merges that made entry 300 would be at fault too; equal entries are seen first.
  CHECK(names(test::fault_of(owned), {"tokenizer.ggml.tokens", "entries 40 and 300"}));

  owned = small();
  const auto n = static_cast<int>(owned.vocabulary.tokens.size());
  owned.vocabulary.tokens.emplace_back("<|end|>");
  owned.vocabulary.kinds.push_back(TokenKind::user_defined);
  CHECK(names(test::fault_of(owned), {"and " + std::to_string(n), "<|end|>"}));
}

TEST_CASE("given an entry that spells no bytes, when read, then the error names it") {
  auto owned = small();
  owned.vocabulary.tokens[7] = "a b";
  CHECK(names(test::fault_of(owned), {"entry 7 ", "tokenizer.ggml.tokens", "'a b'"}));
}
