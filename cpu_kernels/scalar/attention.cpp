// Attention over KV blocks, one row and one block at a time: the definition.
#include <cmath>
#include <cstring>

#include "cpu_kernels/scalar/definitions.h"
#include "cpu_kernels/scalar/half.h"
#include "cpu_kernels/scalar/sums.h"

namespace kvasir::kernels::scalar {
namespace {

constexpr int64_t kBlock = kKvBlockPositions;

float element(const std::byte* data, KvType type, int64_t index) {
  if (type == KvType::f32) {
    float value;
    std::memcpy(&value, data + index * 4, sizeof(value));
    return value;
  }
  uint16_t half;
  std::memcpy(&half, data + index * 2, sizeof(half));
  return half_to_float(half);
}

int64_t padded(int64_t head_dim) { return (head_dim + kLanes - 1) / kLanes * kLanes; }

/// A state that met no key. NaN scores leave max at -inf too, but their weights made the sum NaN.
bool saw_nothing(const float* state) {
  return state[kStateMax] == -INFINITY && state[kStateSum] == 0.0F;
}

/// Score of the key in one slot.
float score(const AttentionTask& task, const float* query, const std::byte* keys, int64_t slot) {
  float total = 0;
  for (int64_t first = 0; first < task.head_dim; first += kDenseChunk) {
    float part = 0;
    for (int64_t d = first; d < task.head_dim && d < first + kDenseChunk; ++d) {
      part = std::fmaf(query[d] * task.scale, element(keys, task.key_type, d * kBlock + slot), part);
    }
    total = total + part;
  }
  if (task.soft_cap > 0) total = task.soft_cap * tanh(total / task.soft_cap);
  return total;
}

/// One row against one block whose slots [first, end) it sees.
void attend_block(const AttentionTask& task, const float* query, const KvBlock& block,
                  int64_t first, int64_t end, float* state) {
  const std::byte* keys = block.data + task.key_offset;
  const std::byte* values = block.data + task.value_offset;
  float weight[kBlock];
  float largest = state[kStateMax];
  for (int64_t slot = 0; slot < kBlock; ++slot) {
    weight[slot] = slot >= first && slot < end ? score(task, query, keys, slot) : -INFINITY;
    largest = weight[slot] > largest ? weight[slot] : largest;
  }
  largest = largest + 0.0F;  // a zero maximum is +0 whichever zero came first
  const float correction = exp(state[kStateMax] - largest);
  state[kStateMax] = largest;
  for (float& w : weight) w = exp(w - largest);
  float* sums = state + kStateSum;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    sums[lane] = std::fmaf(sums[lane], correction, weight[lane]);
    sums[lane] = sums[lane] + weight[lane + kLanes];
  }
  float* output = state + kStateOutput;
  const int64_t stride = padded(task.head_dim);
  for (int64_t d = 0; d < stride; ++d) {
    output[d] = output[d] * correction;
    for (int64_t slot = first; slot < end; ++slot)
      output[d] = std::fmaf(weight[slot], element(values, task.value_type, slot * stride + d), output[d]);
  }
}

}  // namespace

void attention(const AttentionTask& task) {
  const int64_t state_floats = kStateOutput + padded(task.head_dim);
  for (int64_t row = 0; row < task.n_rows; ++row) {
    float* state = task.state + row * state_floats;
    std::memset(state, 0, static_cast<size_t>(state_floats) * sizeof(float));
    state[kStateMax] = -INFINITY;
    for (int64_t b = 0; b < task.n_blocks; ++b) {
      const int64_t start = task.blocks[b].first_position;
      const int64_t first = task.first_key[row] > start ? task.first_key[row] - start : 0;
      const int64_t visible = task.end_key[row] - start;
      const int64_t end = visible < kBlock ? visible : kBlock;
      if (first < end) attend_block(task, task.queries[row], task.blocks[b], first, end, state);
    }
  }
}

void attention_merge(float* running, const float* next, int64_t head_dim) {
  const float largest =
      running[kStateMax] > next[kStateMax] ? running[kStateMax] : next[kStateMax];
  if (saw_nothing(next)) return;
  const float a = exp(running[kStateMax] - largest);
  const float b = exp(next[kStateMax] - largest);
  running[kStateMax] = largest;
  for (int64_t i = kStateSum; i < kStateOutput + padded(head_dim); ++i)
    running[i] = std::fmaf(next[i], b, running[i] * a);
}

void attention_finish(const float* state, int64_t head_dim, float* output) {
  float lanes[kLanes];
  std::memcpy(lanes, state + kStateSum, sizeof(lanes));
  const float sum = sum_lanes(lanes);
  const bool nothing = saw_nothing(state);
  for (int64_t d = 0; d < head_dim; ++d)
    output[d] = nothing ? 0.0F : state[kStateOutput + d] / sum;
}

void store_key_f32(const float* key, int64_t head_dim, int64_t slot, std::byte* keys) {
  for (int64_t d = 0; d < head_dim; ++d) std::memcpy(keys + (d * kBlock + slot) * 4, key + d, 4);
}

void store_key_f16(const float* key, int64_t head_dim, int64_t slot, std::byte* keys) {
  for (int64_t d = 0; d < head_dim; ++d) {
    const uint16_t half = float_to_half(key[d]);
    std::memcpy(keys + (d * kBlock + slot) * 2, &half, 2);
  }
}

void store_value_f32(const float* value, int64_t head_dim, int64_t slot, std::byte* values) {
  std::byte* row = values + slot * padded(head_dim) * 4;
  std::memset(row, 0, static_cast<size_t>(padded(head_dim)) * 4);
  std::memcpy(row, value, static_cast<size_t>(head_dim) * 4);
}

void store_value_f16(const float* value, int64_t head_dim, int64_t slot, std::byte* values) {
  std::byte* row = values + slot * padded(head_dim) * 2;
  std::memset(row, 0, static_cast<size_t>(padded(head_dim)) * 2);
  for (int64_t d = 0; d < head_dim; ++d) {
    const uint16_t half = float_to_half(value[d]);
    std::memcpy(row + d * 2, &half, 2);
  }
}

}  // namespace kvasir::kernels::scalar
