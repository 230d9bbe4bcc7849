// Attention of one layer over KV blocks (FlashAttention: Dao 2023; split keys: "Flash-Decoding").
#pragma once

#include "models/attention_plan.h"
#include "models/state.h"

namespace kvasir {

struct AttentionCall {
  AttentionShape shape;
  const kernels::KernelTable& kernels;
  const Batch& batch;
  int64_t window;           ///< positions a query sees, its own included; 0: all
  LayerPlace place;
  float scale;              ///< of query · key
  const AttentionPlan& plan;
  const float* query;       ///< [n_rows][n_heads * head_dim], rotated
  float* output;            ///< [n_rows][n_heads * head_dim]
  float* partial_states;    ///< for plan.split_keys()
};

/// Every thread of the region calls it; ends when all are done. Partials of 1,024 keys are merged
/// in ascending order whoever computed them, so neither the threads nor the tiles can change a bit.
void run_attention(const AttentionCall& call, DecoderState::PerThread& own, Team& team);

}  // namespace kvasir
