// What other programs say is right: tests/oracle/tokenizer_oracle.py wrote data/*.json.
#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "core/text/bpe_tokenizer.h"

namespace kvasir::test {

inline nlohmann::json read_fixture(const std::string& name) {
  const std::string path = std::string(TEXT_TEST_DATA) + "/" + name;
  std::ifstream file(path);
  REQUIRE_MESSAGE(file.good(), "cannot open ", path);
  return nlohmann::json::parse(file);
}

/// A vocabulary whose `merges` are views into `storage`.
struct OwnedVocabulary {
  std::vector<std::string> storage;
  Vocabulary vocabulary;
  void set_merges(std::vector<std::string> merges) {
    storage = std::move(merges);
    vocabulary.merges.assign(storage.begin(), storage.end());
  }
};

/// The small vocabulary of small_bpe.json: every byte, some hundred merges that overlap, added
/// tokens that overlap.
inline OwnedVocabulary small_vocabulary(const nlohmann::json& fixture, const std::string& pre) {
  OwnedVocabulary owned;
  owned.vocabulary.model = "gpt2";
  owned.vocabulary.pre = pre;
  owned.vocabulary.tokens = fixture["tokens"].get<std::vector<std::string>>();
  for (const int kind : fixture["kinds"])
    owned.vocabulary.kinds.push_back(static_cast<TokenKind>(kind));
  owned.set_merges(fixture["merges"].get<std::vector<std::string>>());
  return owned;
}

inline std::unique_ptr<BpeTokenizer> tokenizer_of(const OwnedVocabulary& owned) {
  auto tokenizer = BpeTokenizer::create(owned.vocabulary);
  REQUIRE_MESSAGE(tokenizer.ok(), tokenizer.error().message);
  return std::move(*tokenizer);
}

/// The error that a vocabulary gives.
inline std::string fault_of(const OwnedVocabulary& owned) {
  const auto tokenizer = BpeTokenizer::create(owned.vocabulary);
  REQUIRE_FALSE(tokenizer.ok());
  return tokenizer.error().message;
}

inline std::string unhex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

/// `bytes` cut at random places.
inline std::vector<std::string> cut_at_random(const std::string& bytes, std::mt19937& random) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = random() % 4;
    parts.push_back(bytes.substr(at, length));
    at += parts.back().size();
  }
  return parts;
}

}  // namespace kvasir::test
