// The gemma3 family, text only (Gemma team 2025): norms before and after each sublayer, norms of
// queries and keys, GELU gates, and a short window with a RoPE base of its own in five layers of
// six.
#include <cmath>

#include "models/families/families.h"
#include "models/families/shared_keys.h"

namespace kvasir::families {
namespace {

/// Every sixth layer sees everything; the others see a window, the token itself included.
Status read_layers(Metadata& data, Config& config) {
  AttentionKind full;
  full.rope_base = data.number("rope.freq_base", 1.0, 1e12);
  if (auto s = read_rope_scaling(data, full); !s) return s;
  AttentionKind local;  // its angles are never scaled
  local.window = data.integer_or("attention.sliding_window", 0, 0, int64_t{1} << 27);
  local.rope_base = data.number_or("rope.freq_base_swa", 10000.0, 1.0, 1e12);
  const int64_t period = data.integer_or("attention.sliding_window_pattern", 6, 1, 4096);
  if (data.fault()) return *data.fault();
  for (int64_t i = 0; i < config.n_layers; ++i) {
    const bool is_full = local.window == 0 || (i + 1) % period == 0;
    config.add_layer(is_full ? full : local);
  }
  return {};
}

Result<Config> read_config(const gguf::Header& header) {
  Metadata data(header, "gemma3");
  Config config;
  if (auto s = read_sizes(data, config); !s) return std::move(s).error();
  config.query_key_norms = true;  // the file's norm weights hold the 1 that Gemma adds
  config.post_norms = true;
  config.gate_activation = GateActivation::gelu_tanh;
  config.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(config.hidden_size)));
  // Queries are scaled by query_pre_attn_scalar^-0.5, which no key spells. It is the head size but
  // in the model of 62 layers (27B), where it is hidden / heads = 168 instead of 128.
  if (config.n_layers == 62) {
    config.attention_scale =
        1.0F / std::sqrt(static_cast<float>(config.hidden_size / config.n_heads));
  }
  if (auto s = read_layers(data, config); !s) return std::move(s).error();

  if (auto s = refuse_unless_zero(data, {"expert_count", "attn_logit_softcapping",
                                         "final_logit_softcapping", "attention.scale"});
      !s)
    return std::move(s).error();
  if (auto s = refuse_unknown_rope_keys(data, {"rope.freq_base", "rope.freq_base_swa"}); !s)
    return std::move(s).error();
  return config;
}

}  // namespace

const Family gemma3 = {"gemma3", read_config};

}  // namespace kvasir::families
