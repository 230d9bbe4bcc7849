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
  AttentionKind full;
  full.rope_base = data.number_or("rope.freq_base", 10000.0, 1.0, 1e12);
  if (auto s = read_rope_scaling(data, full); !s) return std::move(s).error();
  for (int64_t i = 0; i < config.n_layers; ++i) config.add_layer(full);

  if (auto s = refuse_unless_zero(
          data, {"expert_count", "attention.sliding_window", "attention.clamp_kqv",
                 "attention.max_alibi_bias", "logit_scale", "attention.scale"});
      !s)
    return std::move(s).error();
  if (auto s = refuse_unknown_rope_keys(data, {"rope.freq_base"}); !s) return std::move(s).error();
  return config;
}

}  // namespace

const Family qwen2 = {"qwen2", read_config};

}  // namespace kvasir::families
