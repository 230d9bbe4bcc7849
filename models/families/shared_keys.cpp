#include "models/families/shared_keys.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "cpu_kernels/kernels.h"

namespace kvasir::families {

Status read_sizes(Metadata& data, Config& config) {
  constexpr int64_t kMost = 1 << 20;
  config.n_layers = data.integer("block_count", 1, 4096);
  config.trained_context_tokens = data.integer("context_length", 1, int64_t{1} << 27);
  config.hidden_size = data.integer("embedding_length", 1, kMost);
  config.intermediate_size = data.integer("feed_forward_length", 1, kMost);
  config.n_heads = data.integer("attention.head_count", 1, kMost);
  config.n_kv_heads = data.integer_or("attention.head_count_kv", config.n_heads, 1, config.n_heads);
  const int64_t even_share = config.hidden_size / config.n_heads;
  config.head_dim = data.integer_or("attention.key_length", even_share, 1, kernels::kMaxHeadDim);
  const int64_t value_dim =
      data.integer_or("attention.value_length", config.head_dim, 1, kernels::kMaxHeadDim);
  config.norm_epsilon =
      static_cast<float>(data.number("attention.layer_norm_rms_epsilon", 0.0, 1.0));
  config.rotary_dim = data.integer_or("rope.dimension_count", config.head_dim, 2, config.head_dim);
  if (data.fault()) return *data.fault();

  if (config.n_heads % config.n_kv_heads != 0) {
    return make_error(ErrorCode::corrupt_file, "key '{}' is {}, which does not divide {} heads",
                      data.key("attention.head_count_kv"), config.n_kv_heads, config.n_heads);
  }
  if (value_dim != config.head_dim) {
    return make_error(ErrorCode::unsupported, "key '{}' is {}, but keys have {} elements",
                      data.key("attention.value_length"), value_dim, config.head_dim);
  }
  if (config.rotary_dim != config.head_dim || config.rotary_dim % 2 != 0) {
    return make_error(ErrorCode::unsupported,
                      "key '{}' is {}, but only even head sizes rotated whole ({}) are supported",
                      data.key("rope.dimension_count"), config.rotary_dim, config.head_dim);
  }
  config.attention_scale = 1.0F / std::sqrt(static_cast<float>(config.head_dim));
  return {};
}

Status read_rope_scaling(Metadata& data, AttentionKind& kind) {
  const std::string scaling = data.text_or("rope.scaling.type", "none");
  if (scaling == "linear") {
    kind.rope_linear_factor = data.number("rope.scaling.factor", 1e-3, 1e6);
  } else if (scaling != "none") {
    return make_error(ErrorCode::unsupported,
                      "key '{}' is '{}', which is not supported yet (supported: none, linear)",
                      data.key("rope.scaling.type"), scaling);
  }
  if (data.fault()) return *data.fault();
  return {};
}

Status refuse_unless_zero(Metadata& data, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (data.has(name) && data.number_or(name, 0, -1e30, 1e30) != 0)
      return make_error(ErrorCode::unsupported, "key '{}' is not supported yet", data.key(name));
  }
  if (data.fault()) return *data.fault();
  return {};
}

Status refuse_unknown_rope_keys(const Metadata& data, std::initializer_list<const char*> known) {
  constexpr const char* kShared[] = {"rope.dimension_count", "rope.scaling.type",
                                     "rope.scaling.factor", "rope.scaling.original_context_length",
                                     "rope.scaling.finetuned"};
  for (const auto& entry : data.header().metadata()) {
    if (!entry.key.starts_with(data.key("rope."))) continue;
    const auto is_this = [&](const char* name) { return entry.key == data.key(name); };
    if (std::none_of(std::begin(kShared), std::end(kShared), is_this) &&
        std::none_of(known.begin(), known.end(), is_this))
      return make_error(ErrorCode::unsupported, "key '{}' is not known to this build", entry.key);
  }
  return {};
}

Status read_full_attention(Metadata& data, Config& config) {
  AttentionKind full;
  full.rope_base = data.number_or("rope.freq_base", 10000.0, 1.0, 1e12);
  if (auto s = read_rope_scaling(data, full); !s) return s;
  for (int64_t i = 0; i < config.n_layers; ++i) config.add_layer(full);
  if (auto s = refuse_unless_zero(
          data, {"expert_count", "attention.sliding_window", "attention.clamp_kqv",
                 "attention.max_alibi_bias", "logit_scale", "attention.scale"});
      !s)
    return s;
  return refuse_unknown_rope_keys(data, {"rope.freq_base"});
}

}  // namespace kvasir::families
