// A decoder-only transformer.
#pragma once

#include <memory>
#include <vector>

#include "core/engine/model.h"
#include "models/config.h"
#include "models/positions.h"
#include "models/weights.h"

namespace kvasir {

class Step;

class Decoder final : public Model {
 public:
  /// `kernels` is the table every product and sum of this model runs on.
  Decoder(Config config, const kernels::KernelTable& kernels);

  // Filled by the loader before the model is shared.
  Config& config() { return config_; }
  Weights& weights() { return weights_; }
  /// Called once the weights are there.
  void finish_loading();

  const Config& config() const { return config_; }
  const kernels::KernelTable& kernels() const { return kernels_; }

  int64_t n_vocab() const override { return config_.n_vocab; }
  int64_t n_layers() const override { return config_.n_layers; }
  int64_t trained_context_tokens() const override { return config_.trained_context_tokens; }
  const std::vector<kv::LayerKind>& layer_kinds() const override { return kinds_; }
  bool is_f32() const override { return weights_.all_f32; }
  size_t weight_bytes() const override { return planned_weight_bytes_; }
  int64_t weight_bytes_per_token() const override;
  std::string_view kernels_name() const override { return kernels_.name; }
  std::span<const std::byte> weight_memory() const override { return weights_.arena.bytes(); }

  size_t state_bytes(const StepLimits& limits) const override;
  Result<std::unique_ptr<ModelState>> make_state(const StepLimits& limits) const override;
  Status forward(const Batch& batch, ModelState& state, Threads& threads, std::span<float> logits,
                 const CancelToken* cancel, ForwardStatistics& statistics) const override;

  /// Known from the file's header, before packing.
  void set_planned_weight_bytes(size_t bytes) { planned_weight_bytes_ = bytes; }

 private:
  /// Every matrix a decoded token is multiplied with.
  std::vector<const PackedMatrix*> matrices() const;
  void layer(Step& step, const LayerWeights& w, const LayerPlace& place) const;

  Config config_;
  const kernels::KernelTable& kernels_;
  Weights weights_;
  std::vector<RotaryPositions> positions_;  // one a layer kind
  std::vector<kv::LayerKind> kinds_;        // as config_.attention_kinds
  size_t planned_weight_bytes_ = 0;
};

}  // namespace kvasir
