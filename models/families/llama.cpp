// The llama family: Llama 1 to 3, SmolLM2, Mistral without a window, and whatever shares their
// layers. GGUF keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#include "models/families/families.h"
#include "models/families/shared_keys.h"

namespace kvasir::families {
namespace {

Result<Config> read_config(const gguf::Header& header) {
  Metadata data(header, "llama");
  Config config;
  if (auto s = read_sizes(data, config); !s) return std::move(s).error();
  // The converter orders query and key rows for pairs (2i, 2i + 1).
  config.file_pairs_interleaved = true;
  config.may_have_rope_factors = true;
  if (auto s = read_full_attention(data, config); !s) return std::move(s).error();
  return config;
}

}  // namespace

const Family llama = {"llama", read_config};

}  // namespace kvasir::families
