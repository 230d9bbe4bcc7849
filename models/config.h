// What a decoder can be: mathematical switches, no names of vendors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/files/gguf.h"
#include "kvasir/result.h"

namespace kvasir {

/// What the gate of the feed-forward goes through (Shazeer 2020: SwiGLU, GEGLU).
enum class GateActivation : uint8_t { silu, gelu_tanh };

/// How a layer attends. Layers of one kind keep the same positions, so they share blocks
/// (kv::LayerKind), and turn by the same angles (RoPE: Su et al. 2021):
/// angle(p, i) = (p / rope_linear_factor) * rope_base^(-2i / rotary_dim).
struct AttentionKind {
  int64_t window = 0;  ///< positions a query sees, its own included; 0: all before it
  double rope_base = 10000;
  double rope_linear_factor = 1;
  friend bool operator==(const AttentionKind&, const AttentionKind&) = default;
};

/// Where a layer's keys and values lie.
struct LayerPlace {
  size_t kind = 0;    ///< of Config::attention_kinds
  int64_t index = 0;  ///< among the layers of that kind
};

/// Constants of a decoder-only transformer with pre-normalised blocks (Vaswani et al. 2017; RMSNorm:
/// Zhang and Sennrich 2019; GQA: Ainslie et al. 2023).
struct Config {
  int64_t n_layers = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t n_vocab = 0;
  int64_t trained_context_tokens = 0;

  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  float norm_epsilon = 0;

  float embedding_scale = 1;       ///< x = embedding * this
  float attention_scale = 0;       ///< softmax(this * q . k)
  bool attention_biases = false;   ///< q, k, v = W h + b
  bool query_key_norms = false;    ///< RMSNorm of every head of q and k, before the rotation
  bool post_norms = false;         ///< x += RMSNorm(sublayer) instead of x += sublayer
  GateActivation gate_activation = GateActivation::silu;

  /// Distinct, in the order of their first layers; and which of them each layer is.
  std::vector<AttentionKind> attention_kinds;
  std::vector<LayerPlace> layers;  ///< [n_layers]
  void add_layer(const AttentionKind& kind);
  int64_t n_layers_of(size_t kind) const;

  int64_t rotary_dim = 0;
  /// The file may hold factors [rotary_dim / 2] that divide the angles.
  bool may_have_rope_factors = false;
  /// True when the file's query and key rows are ordered for interleaved pairs: the loader
  /// reorders the matrices, so that the decoder knows only half-split pairs. (No family has this and
  /// biases or norms of queries and keys, whose order would have to follow.)
  bool file_pairs_interleaved = false;

  int64_t n_query_columns() const { return n_heads * head_dim; }
  int64_t n_kv_columns() const { return n_kv_heads * head_dim; }
};

/// How a family's files spell a Config and its tensors. One file in models/families defines one.
struct Family {
  const char* architecture;                       ///< general.architecture
  Result<Config> (*read_config)(const gguf::Header& header);
};

/// All families, ascending by architecture.
const std::vector<Family>& all_families();

}  // namespace kvasir
