// What changes during a step: activations and scratch, made once for the largest step.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/aligned_buffer.h"
#include "core/engine/model.h"
#include "cpu_kernels/kernels.h"
#include "models/attention_plan.h"
#include "models/config.h"
#include "models/fast_dense.h"
#include "models/weights.h"

namespace kvasir {

/// Inputs of a matrix product: floats [n_rows][n_columns] and, for the forms that the matrices need,
/// int8 codes with the scales of their groups.
struct ActivationBuffer {
  int64_t n_columns = 0;
  float* values = nullptr;
  int8_t* codes = nullptr;  ///< groups of 32; null when not needed, like the following
  kernels::ActivationGroup* groups = nullptr;
  int8_t* wide_codes = nullptr;  ///< groups of 256
  kernels::WideActivationGroup* wide_groups = nullptr;

  int64_t codes_stride() const;
  int64_t n_groups() const { return n_columns / kernels::kGroupColumns; }
  int64_t n_wide_groups() const { return n_columns / kernels::kWideGroupColumns; }
  float* row(int64_t r) const { return values + r * n_columns; }
  kernels::Activations view(int64_t n_rows) const;
};

/// Hands out aligned parts of one buffer. A first pass with no memory only counts.
class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}
  template <class T>
  T* take(int64_t count) {
    std::byte* at = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (static_cast<size_t>(count) * sizeof(T) + kCacheLineBytes - 1) / kCacheLineBytes *
             kCacheLineBytes;
    return reinterpret_cast<T*>(at);
  }
  ActivationBuffer take_activations(int64_t n_rows, int64_t n_columns, InputForms forms);
  size_t used() const { return used_; }

 private:
  std::byte* base_;
  size_t used_ = 0;
};

/// Rows up to which every thread prepares its own copy of a matrix input instead of sharing the
/// work: normalising and quantising 576 floats takes 0.2 us, a barrier 0.5 us.
inline constexpr int64_t kPrivateRows = 1;

struct DecoderState final : public ModelState {
  size_t size_bytes() const override { return memory.size(); }
  std::vector<std::string> fast_math_choices() const override { return fast_choices.describe(); }

  /// Sets every pointer into `base`, or only counts when it is null. Returns the bytes needed.
  size_t carve(const Config& config, const MatrixInputs& inputs, const StepLimits& limits,
               std::byte* base);

  AlignedBuffer memory;
  StepLimits limits;

  // [max_rows][...] unless said otherwise
  int32_t* row_segment = nullptr;  ///< index of the batch's segment
  float* x = nullptr;           ///< residual stream [hidden]
  ActivationBuffer normed;      ///< RMSNorm(x) [hidden]
  float* query = nullptr;       ///< [n_heads * head_dim]
  float* key = nullptr;         ///< [n_kv_heads * head_dim]
  float* value = nullptr;       ///< [n_kv_heads * head_dim]
  ActivationBuffer attended;    ///< [n_heads * head_dim]
  float* gate = nullptr;        ///< [intermediate]
  float* up = nullptr;          ///< [intermediate]
  ActivationBuffer activated;   ///< activation(gate) * up [intermediate]
  float* sublayer = nullptr;    ///< what a post norm normalises [hidden]; null without such norms
  struct RotaryRows {
    float* cos = nullptr;       ///< [rotary_dim / 2]
    float* sin = nullptr;       ///< [rotary_dim / 2]
  };
  std::vector<RotaryRows> rotary;  ///< one a layer kind
  ActivationBuffer head_input;  ///< RMSNorm of the rows whose logits are wanted [max_logit_rows][hidden]

  /// One a thread.
  struct PerThread {
    ActivationBuffer normed;      ///< [kPrivateRows][hidden]
    ActivationBuffer head_input;  ///< [kPrivateRows][hidden]
    ActivationBuffer attended;   ///< [kPrivateRows][n_heads * head_dim]
    ActivationBuffer activated;  ///< [kPrivateRows][intermediate]
    std::byte* matmul_scratch = nullptr;
    std::byte* attention_scratch = nullptr;
    AttentionScratch attention;
    std::unique_ptr<FastDense> fast_dense;  ///< with fast math only
  };
  std::vector<PerThread> threads;

  FastChoices fast_choices;              ///< empty unless fast math was asked for
  std::vector<AttentionPlan> attention;  ///< one a layer kind, made anew for each step
  float* partial_states = nullptr;       ///< see AttentionPlan::split_keys
};

}  // namespace kvasir
