// The qwen2 family: Qwen2, Qwen2.5 and their Coder models (Qwen team 2024): the llama layers with
// biases on queries, keys and values.
#include "models/families/families.h"
#include "models/families/shared_keys.h"

namespace kvasir::families {
namespace {

Result<Config> read_config(const gguf::Header& header) {
  Metadata data(header, "qwen2");
  Config config;
  if (auto s = read_sizes(data, config); !s) return std::move(s).error();
  config.attention_biases = true;
  if (auto s = read_full_attention(data, config); !s) return std::move(s).error();
  return config;
}

}  // namespace

const Family qwen2 = {"qwen2", read_config};

}  // namespace kvasir::families
