// A language model as the engine sees it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/batch.h"
#include "core/engine/statistics.h"
#include "core/kv/layout.h"
#include "core/threads/threads.h"
#include "kvasir/cancel.h"
#include "kvasir/result.h"

namespace kvasir {

/// Sizes a step never exceeds; the scratch memory is made for them once.
struct StepLimits {
  int64_t max_rows = 512;
  int64_t max_logit_rows = 1;
  int64_t max_sequences = 1;
  int64_t max_context_tokens = 0;  ///< over all sequences of a step, for lists of blocks
  int n_threads = 1;
  bool fast_math = false;  ///< dense products may use a library, with other bits
};

/// Everything that changes during a step and is not KV. Made once, so that a step allocates
/// nothing. Used by one step at a time.
class ModelState {
 public:
  virtual ~ModelState() = default;
  virtual size_t size_bytes() const = 0;
  /// With fast math: which shapes use the library, for people; else empty.
  virtual std::vector<std::string> fast_math_choices() const { return {}; }
};

/// Weights and the forward pass. Immutable after load: any number of threads may call `forward`,
/// each with its own state and sequences.
class Model {
 public:
  virtual ~Model() = default;

  virtual int64_t n_vocab() const = 0;
  virtual int64_t n_layers() const = 0;
  virtual int64_t trained_context_tokens() const = 0;
  virtual const std::vector<kv::LayerKind>& layer_kinds() const = 0;
  /// True when the weights are f32, so that `--kv-type auto` keeps f32 keys and values.
  virtual bool is_f32() const = 0;
  virtual size_t weight_bytes() const = 0;
  /// Weight bytes one decoded token reads: an embedding row instead of the table.
  virtual int64_t weight_bytes_per_token() const = 0;

  /// Name of the kernel table in use: "avx2".
  virtual std::string_view kernels_name() const = 0;
  /// All packed weights, as decoding streams them: to measure how fast they can be read.
  virtual std::span<const std::byte> weight_memory() const = 0;

  virtual size_t state_bytes(const StepLimits& limits) const = 0;
  virtual Result<std::unique_ptr<ModelState>> make_state(const StepLimits& limits) const = 0;

  /// Evaluates every row of the batch: writes its keys and values into the sequences' reserved
  /// blocks (committing is the caller's business) and the logits of the asked rows into
  /// `logits` [logit_rows][n_vocab]. cancelled: the state of the sequences' reserved positions is
  /// undefined. Token ids must be in range.
  virtual Status forward(const Batch& batch, ModelState& state, Threads& threads,
                         std::span<float> logits, const CancelToken* cancel,
                         ForwardStatistics& statistics) const = 0;
};

}  // namespace kvasir
