// What a decoder can be: mathematical switches, no names of vendors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/files/gguf.h"
#include "kvasir/result.h"

namespace kvasir {

/// Constants of a decoder-only transformer with pre-normalised blocks (Vaswani et al. 2017; RMSNorm:
/// Zhang and Sennrich 2019; SwiGLU: Shazeer 2020; RoPE: Su et al. 2021; GQA: Ainslie et al. 2023).
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

  // Positions: angle(p, i) = (p / rope_linear_factor) * rope_base^(-2i / rotary_dim), divided by the
  // file's frequency factors when it has them.
  double rope_base = 10000;
  double rope_linear_factor = 1;
  int64_t rotary_dim = 0;
  /// True when the file's query and key rows are ordered for interleaved pairs: the loader
  /// reorders them, so that the decoder knows only half-split pairs.
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
