#include "core/text/vocabulary.h"

#include <algorithm>
#include <limits>

#include "tests/support/gguf_writer.h"
#include "tests/text/fixtures.h"

using namespace kvasir;

namespace {

/// A GGUF file's bytes and their header.
struct Parsed {
  std::string bytes;
  gguf::Header header;
};

Parsed parse(const test::GgufWriter& writer) {
  Parsed parsed{writer.bytes(), {}};
  auto header = gguf::Header::parse(std::as_bytes(std::span(parsed.bytes)));
  REQUIRE_MESSAGE(header.ok(), header.error().message);
  parsed.header = std::move(*header);
  return parsed;
}

test::GgufWriter begin(const std::string& model, const std::vector<std::string>& tokens) {
  test::GgufWriter writer;
  writer.text("general.architecture", "llama");
  writer.text("tokenizer.ggml.model", model);
  writer.texts("tokenizer.ggml.tokens", tokens);
  return writer;
}

test::GgufWriter byte_level() {
  auto writer = begin("gpt2", {"a", "b", "ab", "<|im_end|>", "<|eot|>", "</s>"});
  writer.text("tokenizer.ggml.pre", "smollm");
  writer.texts("tokenizer.ggml.merges", {"a b"});
  return writer;
}

/// Says what the message was where a part is missing.
bool names(const std::string& message, std::initializer_list<const char*> parts) {
  const bool all = std::all_of(parts.begin(), parts.end(), [&](const auto& part) {
    return message.find(part) != std::string::npos;
  });
  if (!all) MESSAGE(message);
  return all;
}

std::string fault_of(const test::GgufWriter& writer) {
  const auto parsed = parse(writer);
  const auto tokenizer = Tokenizer::from_gguf(parsed.header);
  REQUIRE_FALSE(tokenizer.ok());
  return tokenizer.error().message;
}

}  // namespace

TEST_CASE("given ids and control tokens, when read, then every one that ends an answer is found") {
  auto writer = byte_level();
  writer.ints("tokenizer.ggml.token_type", {1, 1, 1, 3, 3, 1});
  writer.u32("tokenizer.ggml.bos_token_id", 0);
  writer.u32("tokenizer.ggml.eos_token_id", 4);
  writer.u32("tokenizer.ggml.eot_token_id", 1);
  writer.boolean("tokenizer.ggml.add_bos_token", true);
  std::unique_ptr<Tokenizer> tokenizer;
  {
    const auto parsed = parse(writer);
    auto result = Tokenizer::from_gguf(parsed.header);
    REQUIRE_MESSAGE(result.ok(), result.error().message);
    tokenizer = std::move(*result);
  }  // the file is gone: the tokenizer keeps nothing of it
  // eot 1, the known end text "<|im_end|>" 3, eos 4; "</s>" is no control token here.
  const auto ends = tokenizer->end_tokens();
  CHECK(std::vector<TokenId>(ends.begin(), ends.end()) == std::vector<TokenId>{1, 3, 4});
  CHECK(tokenizer->bos() == 0);
  CHECK(tokenizer->eos() == 4);
  CHECK(tokenizer->adds_bos());
  CHECK(tokenizer->n_vocab() == 6);
  CHECK(tokenizer->description() == "gpt2 / smollm");
  const auto ids = tokenizer->encode("ab<|im_end|>", SpecialTokens::parse);
  REQUIRE(ids.ok());
  CHECK(*ids == std::vector<TokenId>{2, 3});
}

TEST_CASE("given no ids, when a byte-level vocabulary is read, then there are no defaults") {
  const auto parsed = parse(byte_level());
  const auto tokenizer = Tokenizer::from_gguf(parsed.header);
  REQUIRE_MESSAGE(tokenizer.ok(), tokenizer.error().message);
  CHECK_FALSE((*tokenizer)->bos().has_value());
  CHECK_FALSE((*tokenizer)->eos().has_value());
  CHECK_FALSE((*tokenizer)->adds_bos());
  CHECK((*tokenizer)->end_tokens().empty());
}

TEST_CASE("given ids past the vocabulary, when read, then the error names key, id and size") {
  for (const char* name :
       {"bos", "eos", "eot", "eom", "unknown", "padding", "seperator", "fim_pre"}) {
    auto writer = byte_level();
    const std::string key = std::string("tokenizer.ggml.") + name + "_token_id";
    writer.u32(key, 6);
    CHECK(names(fault_of(writer), {key.c_str(), " 6,", "only 6"}));
  }
}

TEST_CASE("given the faults of case T16, when read, then each error names the key at fault") {
  auto writer = begin("llama", {"a"});
  writer.floats("tokenizer.ggml.scores", {0});
  writer.ints("tokenizer.ggml.token_type", {1});
  CHECK(names(fault_of(writer), {"_token_id' is missing and its default is"}));
  writer.u32("tokenizer.ggml.eos_token_id", 4294967295U);
  CHECK(names(fault_of(writer), {"tokenizer.ggml.eos_token_id", "4294967295"}));

  writer = begin("llama", {"a", "b", "c"});
  writer.floats("tokenizer.ggml.scores", {0});
  CHECK(names(fault_of(writer), {"tokenizer.ggml.scores", "1 entries", "has 3"}));

  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    writer = begin("llama", {"a", "b"});
    writer.floats("tokenizer.ggml.scores", {0, bad});
    CHECK(names(fault_of(writer), {"entry 1 ", "tokenizer.ggml.scores"}));
  }
  for (const char* token : {"<0x-1>", "<0xZZ>"}) {
    writer = begin("llama", {token, "a"});
    writer.ints("tokenizer.ggml.token_type", {6, 1});
    CHECK(names(fault_of(writer), {"entry 0 ", "tokenizer.ggml.tokens", token}));
  }
}

TEST_CASE("given a sound vocabulary of another kind, when read, then the error names the kind") {
  const auto writer = begin("t5", {"<unk>", "<s>", "</s>", "<0x41>"});
  CHECK(names(fault_of(writer), {"'t5'", "not supported yet", "gpt2", "llama"}));
}

TEST_CASE("given a SentencePiece vocabulary, when read, then its keys are followed or refused by name") {
  const auto sound = [] {
    auto writer = begin("llama", {"<unk>", "<s>", "</s>", "<0x41>", "\u2581", "a"});
    writer.ints("tokenizer.ggml.token_type", {2, 3, 3, 6, 1, 1});
    writer.floats("tokenizer.ggml.scores", {0, 0, 0, 0, -1, -2});
    return writer;
  };
  for (const bool prefix : {false, true}) {
    auto writer = sound();
    if (!prefix) writer.boolean("tokenizer.ggml.add_space_prefix", false);  // true is the default
    const auto parsed = parse(writer);
    const auto tokenizer = Tokenizer::from_gguf(parsed.header);
    REQUIRE(tokenizer.ok());
    const auto ids = (*tokenizer)->encode("a", SpecialTokens::as_text);
    REQUIRE(ids.ok());
    CHECK(*ids == (prefix ? std::vector<TokenId>{4, 5} : std::vector<TokenId>{5}));
    CHECK((*tokenizer)->bos() == 1);
    CHECK((*tokenizer)->adds_bos());
  }
  auto writer = sound();
  writer.boolean("tokenizer.ggml.remove_extra_whitespaces", true);
  CHECK(names(fault_of(writer), {"tokenizer.ggml.remove_extra_whitespaces", "not supported"}));
  writer = sound();
  writer.ints("tokenizer.ggml.precompiled_charsmap", {1});
  CHECK(names(fault_of(writer), {"tokenizer.ggml.precompiled_charsmap", "not supported"}));
  writer = begin("llama", {"<unk>", "<s>", "</s>"});
  CHECK(names(fault_of(writer), {"tokenizer.ggml.scores"}));
}

TEST_CASE("given lists that do not fit together, when read, then the error names the key") {
  auto writer = byte_level();
  writer.ints("tokenizer.ggml.token_type", {1, 1});
  CHECK(names(fault_of(writer), {"tokenizer.ggml.token_type", "2 entries", "has 6"}));
  writer = byte_level();
  writer.ints("tokenizer.ggml.token_type", {1, 1, 1, 1, 1, 9});
  CHECK(names(fault_of(writer), {"entry 5 ", "tokenizer.ggml.token_type", "9"}));
  writer = begin("gpt2", {});
  CHECK(names(fault_of(writer), {"tokenizer.ggml.tokens", "empty"}));
}

TEST_CASE("given missing keys, when read, then the error names the key") {
  auto writer = begin("gpt2", {"a"});
  writer.text("tokenizer.ggml.pre", "gpt-2");
  CHECK(names(fault_of(writer), {"tokenizer.ggml.merges"}));
  writer = begin("gpt2", {"a"});
  writer.texts("tokenizer.ggml.merges", {});
  CHECK(names(fault_of(writer), {"tokenizer.ggml.pre", "missing"}));
  test::GgufWriter nothing;
  nothing.text("general.architecture", "llama");
  CHECK(names(fault_of(nothing), {"tokenizer.ggml.model"}));
}
