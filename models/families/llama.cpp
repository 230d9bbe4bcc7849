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
  AttentionKind full;
  full.rope_base = data.number_or("rope.freq_base", 10000.0, 1.0, 1e12);
  if (auto s = read_rope_scaling(data, full); !s) return std::move(s).error();
  // The converter orders query and key rows for pairs (2i, 2i + 1).
  config.file_pairs_interleaved = true;
  config.may_have_rope_factors = true;
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

const Family llama = {"llama", read_config};

}  // namespace kvasir::families
