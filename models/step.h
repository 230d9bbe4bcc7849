// One thread's hands during a forward step: the operations a layer is written in.
#pragma once

#include <chrono>
#include <initializer_list>

#include "core/engine/batch.h"
#include "core/engine/statistics.h"
#include "core/threads/threads.h"
#include "cpu_kernels/kernels.h"
#include "models/config.h"
#include "models/positions.h"
#include "models/state.h"
#include "models/weights.h"

namespace kvasir {

/// output [n_rows][matrix->n_rows] = matrix · input.
struct Product {
  const PackedMatrix* matrix;
  float* output;
};

/// What all threads of a step share and none changes.
struct StepContext {
  const Config& config;
  const kernels::KernelTable& kernels;
  const std::vector<RotaryPositions>& positions;  ///< one a layer kind
  const std::vector<kv::LayerKind>& kinds;
  const Batch& batch;
  DecoderState& state;
  ForwardStatistics& statistics;
};

/// Every thread of the region makes one and calls the same operations in the same order. Each
/// operation ends when all threads are done, unless its comment says otherwise.
class Step {
 public:
  Step(const StepContext& context, Team& team);

  /// x[row] = the token's embedding, scaled; also the rows' cos and sin.
  void embed(const PackedMatrix& token_embedding);
  /// input = RMSNorm(x), in the forms that the next products need.
  void normalise(const std::vector<float>& weight, InputForms forms);
  /// query, key, value = their matrix · input, one pass over all three.
  void project_attention(const PackedMatrix& query, const PackedMatrix& key,
                         const PackedMatrix& value);
  /// gate, up = their matrix · input, one pass over both.
  void project_feed_forward(const PackedMatrix& gate, const PackedMatrix& up);
  /// x += matrix · input, or its RMSNorm where `post_norm` is not empty.
  void add_projection(const PackedMatrix& matrix, const std::vector<float>& post_norm);
  /// Adds biases to queries, keys and values, normalises heads of queries and keys (each where the
  /// layer has such vectors), rotates both to their positions, stores keys and values in the
  /// sequences' blocks.
  void rotate_and_append(const LayerWeights& w, const LayerPlace& place);
  /// input = softmax(query · keys) · values over what each query sees.
  void attend(const LayerPlace& place, InputForms forms);
  /// input = activation(gate) * up.
  void gate(InputForms forms);
  /// logits of the wanted rows: output · RMSNorm(x).
  void head(const std::vector<float>& output_norm, const PackedMatrix& output, InputForms forms,
            float* logits);

 private:
  int64_t n_rows() const { return static_cast<int64_t>(context_.batch.tokens.size()); }
  /// One thread's piece of a product, by our kernels or (fast math) by the library.
  void multiply_panels(kernels::MatmulTask task);
  void multiply(const kernels::Activations& input, std::initializer_list<Product> products,
                bool add_to_output);
  /// Fills `buffer` row by row with `fill(row, values)` and quantises it to `forms`; `own` is this thread's
  /// copy for steps of few rows. The next products read it.
  template <class Fill>
  void prepare(ActivationBuffer& buffer, ActivationBuffer& own, InputForms forms, int64_t rows,
               const Fill& fill);
  void quantize_row(const ActivationBuffer& buffer, InputForms forms, int64_t row);
  void rotate_and_append_row(const LayerWeights& w, const LayerPlace& place, int64_t kv_head,
                             int64_t row);
  /// Bias, norm and rotation of `n_heads` heads of one row at `heads`; empty vectors do nothing.
  /// `bias` is the layer's, `first_column` where these heads begin in it.
  struct HeadRow {
    float* heads;
    int64_t n_heads;
    int64_t first_column;
    const std::vector<float>& bias;
    const std::vector<float>& norm;
  };
  void prepare_heads(const HeadRow& row, const float* cos, const float* sin);
  const BatchSegment& segment(int64_t row) const;
  int64_t position(int64_t row) const;
  void finish_zone(Zone zone);

  const StepContext& context_;
  const kernels::KernelTable& kernels_;
  const Config& config_;
  DecoderState& state_;
  DecoderState::PerThread& own_;
  Team& team_;
  kernels::Activations input_{};
  std::chrono::steady_clock::time_point zone_start_;
};

}  // namespace kvasir
