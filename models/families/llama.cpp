// The llama family: Llama 1 to 3, SmolLM2, Mistral without a window, and whatever shares their
// layers. GGUF keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#include "models/families/families.h"
#include "cpu_kernels/kernels.h"
#include "models/families/metadata.h"

namespace kvasir::families {
namespace {

Status read_positions(Metadata& data, Config& config) {
  config.rotary_dim = data.integer_or("rope.dimension_count", config.head_dim, 2, config.head_dim);
  config.rope_base = data.number_or("rope.freq_base", 10000.0, 1.0, 1e12);
  // The converter orders query and key rows for pairs (2i, 2i + 1).
  config.file_pairs_interleaved = true;
  const std::string scaling = data.text_or("rope.scaling.type", "none");
  if (scaling == "linear") {
    config.rope_linear_factor = data.number("rope.scaling.factor", 1e-3, 1e6);
  } else if (scaling != "none") {
    return make_error(ErrorCode::unsupported,
                      "key '{}' is '{}', which is not supported yet (supported: none, linear)",
                      data.key("rope.scaling.type"), scaling);
  }
  if (config.rotary_dim != config.head_dim || config.rotary_dim % 2 != 0) {
    return make_error(ErrorCode::unsupported,
                      "key '{}' is {}, but only even head sizes rotated whole ({}) are supported",
                      data.key("rope.dimension_count"), config.rotary_dim, config.head_dim);
  }
  return {};
}

/// Keys that would change the arithmetic in a way the decoder does not know.
Status refuse_unknown_arithmetic(Metadata& data, const gguf::Header& header) {
  for (const char* name : {"expert_count", "attention.sliding_window", "attention.clamp_kqv",
                           "attention.max_alibi_bias", "logit_scale", "attention.scale"}) {
    if (data.has(name) && data.number_or(name, 0, -1e30, 1e30) != 0) {
      return make_error(ErrorCode::unsupported, "key '{}' is not supported yet", data.key(name));
    }
  }
  for (const auto& entry : header.metadata()) {
    if (!entry.key.starts_with(data.key("rope."))) continue;
    bool known = false;
    for (const char* name : {"rope.dimension_count", "rope.freq_base", "rope.scaling.type",
                             "rope.scaling.factor", "rope.scaling.original_context_length",
                             "rope.scaling.finetuned"})
      known = known || entry.key == data.key(name);
    if (!known)
      return make_error(ErrorCode::unsupported, "key '{}' is not known to this build", entry.key);
  }
  return {};
}

Result<Config> read_config(const gguf::Header& header) {
  constexpr int64_t kMost = 1 << 20;
  Metadata data(header, "llama");
  Config config;
  config.n_layers = data.integer("block_count", 1, 4096);
  config.trained_context_tokens = data.integer("context_length", 1, int64_t{1} << 27);
  config.hidden_size = data.integer("embedding_length", 1, kMost);
  config.intermediate_size = data.integer("feed_forward_length", 1, kMost);
  config.n_heads = data.integer("attention.head_count", 1, kMost);
  config.n_kv_heads =
      data.integer_or("attention.head_count_kv", config.n_heads, 1, config.n_heads);
  const int64_t even_share = config.hidden_size / config.n_heads;
  config.head_dim = data.integer_or("attention.key_length", even_share, 1, kernels::kMaxHeadDim);
  const int64_t value_dim =
      data.integer_or("attention.value_length", config.head_dim, 1, kernels::kMaxHeadDim);
  config.norm_epsilon = static_cast<float>(
      data.number("attention.layer_norm_rms_epsilon", 0.0, 1.0));
  if (data.fault()) return *data.fault();

  if (config.n_heads % config.n_kv_heads != 0) {
    return make_error(ErrorCode::corrupt_file, "key '{}' is {}, which does not divide {} heads",
                      data.key("attention.head_count_kv"), config.n_kv_heads, config.n_heads);
  }
  if (value_dim != config.head_dim) {
    return make_error(ErrorCode::unsupported, "key '{}' is {}, but keys have {} elements",
                      data.key("attention.value_length"), value_dim, config.head_dim);
  }
  if (auto s = read_positions(data, config); !s) return std::move(s).error();
  if (auto s = refuse_unknown_arithmetic(data, header); !s) return std::move(s).error();
  if (data.fault()) return *data.fault();
  return config;
}

}  // namespace

const Family llama = {"llama", read_config};

}  // namespace kvasir::families
