#include "core/text/tokenizer.h"

#include "core/base/error.h"
#include "core/text/bpe_tokenizer.h"
#include "core/text/sentencepiece_tokenizer.h"
#include "core/text/vocabulary.h"

namespace kvasir {
namespace {

template <class T>
Result<std::unique_ptr<Tokenizer>> as_tokenizer(Result<std::unique_ptr<T>> created) {
  if (!created) return std::move(created).error();
  return std::unique_ptr<Tokenizer>(std::move(*created));
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::from_gguf(const gguf::Header& header) {
  auto vocabulary = Vocabulary::read(header);
  if (!vocabulary) return std::move(vocabulary).error();
  if (vocabulary->model == "gpt2") return as_tokenizer(BpeTokenizer::create(std::move(*vocabulary)));
  if (vocabulary->model == "llama")
    return as_tokenizer(SentencePieceTokenizer::create(std::move(*vocabulary)));
  return make_error(ErrorCode::unsupported,
                    "tokenizer model '{}' (key 'tokenizer.ggml.model') is not supported yet "
                    "(supported: gpt2, llama)",
                    vocabulary->model);
}

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string bytes;
  for (const TokenId id : ids) bytes += token_bytes(id);
  return bytes;
}

}  // namespace kvasir
