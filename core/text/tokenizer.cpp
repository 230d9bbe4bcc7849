#include "core/text/tokenizer.h"

#include "core/base/error.h"
#include "core/text/bpe_tokenizer.h"
#include "core/text/vocabulary.h"

namespace kvasir {

Result<std::unique_ptr<Tokenizer>> Tokenizer::from_gguf(const gguf::Header& header) {
  auto vocabulary = Vocabulary::read(header);
  if (!vocabulary) return std::move(vocabulary).error();
  if (vocabulary->model != "gpt2") {
    return make_error(ErrorCode::unsupported,
                      "tokenizer model '{}' (key 'tokenizer.ggml.model') is not supported yet "
                      "(supported: gpt2)",
                      vocabulary->model);
  }
  auto tokenizer = BpeTokenizer::create(std::move(*vocabulary));
  if (!tokenizer) return std::move(tokenizer).error();
  return std::unique_ptr<Tokenizer>(std::move(*tokenizer));
}

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string bytes;
  for (const TokenId id : ids) bytes += token_bytes(id);
  return bytes;
}

}  // namespace kvasir
