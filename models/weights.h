// What the file gave: the tensors of a decoder, packed.
#pragma once

#include <functional>
#include <vector>

#include "core/files/gguf.h"
#include "core/tensor/weight_arena.h"
#include "core/threads/threads.h"
#include "cpu_kernels/kernels.h"
#include "models/config.h"

namespace kvasir {

using kernels::PackedMatrix;

/// The forms in which a matrix input is wanted beside floats, which are always there.
struct InputForms {
  bool groups = false;       ///< codes in groups of 32
  bool wide_groups = false;  ///< codes in groups of 256

  void add(const PackedMatrix& reader);
  void add(InputForms other);
};

/// The inputs of a block's matrices, and of the output matrix.
struct MatrixInputs {
  InputForms attention;         ///< of query, key, value
  InputForms attention_output;
  InputForms feed_forward;      ///< of gate and up
  InputForms down;
  InputForms head;
};

/// One transformer block. Shapes are [rows, columns] = [outputs, inputs]. A vector that the config
/// does not ask for is empty.
struct LayerWeights {
  std::vector<float> attention_norm;     ///< [hidden]
  PackedMatrix query;                    ///< [n_heads * head_dim, hidden], half-split pairs
  PackedMatrix key;                      ///< [n_kv_heads * head_dim, hidden], half-split pairs
  PackedMatrix value;                    ///< [n_kv_heads * head_dim, hidden]
  std::vector<float> query_bias;         ///< [n_heads * head_dim]
  std::vector<float> key_bias;           ///< [n_kv_heads * head_dim]
  std::vector<float> value_bias;         ///< [n_kv_heads * head_dim]
  std::vector<float> query_norm;         ///< [head_dim], the same for every head
  std::vector<float> key_norm;           ///< [head_dim]
  PackedMatrix attention_output;         ///< [hidden, n_heads * head_dim]
  std::vector<float> attention_post_norm;     ///< [hidden]
  std::vector<float> feed_forward_norm;       ///< [hidden]
  PackedMatrix gate;                     ///< [intermediate, hidden]
  PackedMatrix up;                       ///< [intermediate, hidden]
  PackedMatrix down;                     ///< [hidden, intermediate]
  std::vector<float> feed_forward_post_norm;  ///< [hidden]
  MatrixInputs inputs;
};

struct Weights {
  PackedMatrix token_embedding;     ///< [n_vocab, hidden]
  std::vector<LayerWeights> layers;
  std::vector<float> output_norm;   ///< [hidden]
  PackedMatrix output;              ///< [n_vocab, hidden]; the embedding when tied
  bool tied_output = false;
  std::vector<float> rope_factors;  ///< [rotary_dim / 2] or empty: angles are divided by them
  MatrixInputs inputs;              ///< of all layers together
  bool all_f32 = false;             ///< every matrix of the file is f32
  WeightArena arena;                ///< the matrices' memory

  int64_t packed_bytes() const { return static_cast<int64_t>(arena.bytes().size()); }
};

/// A matrix of the file and where it goes.
struct PackJob {
  const TensorView* source = nullptr;
  PackedMatrix* destination = nullptr;
  int64_t unpair_head_dim = 0;  ///< > 0: rows of each head go from interleaved to half-split order
  size_t arena_offset = 0;
};

/// The tensors a config needs, found in the file with the right type and shape, and nothing else
/// in it. `weights` must not move while the jobs are used.
Result<std::vector<PackJob>> plan_weights(const gguf::Header& header, Config& config,
                                          Weights& weights, size_t* arena_bytes);

/// Packs in parallel, giving the file's pages back as they are consumed.
Status pack_weights(const gguf::File& file, const std::vector<PackJob>& jobs, size_t arena_bytes,
                    Weights& weights, Threads& threads,
                    const std::function<void(int64_t, int64_t)>& progress,
                    const CancelToken* cancel);

}  // namespace kvasir
