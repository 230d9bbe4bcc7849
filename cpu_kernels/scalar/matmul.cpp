// Matrix products, one output at a time: the definition.
#include <cmath>
#include <cstring>

#include "cpu_kernels/scalar/definitions.h"
#include "cpu_kernels/scalar/half.h"

namespace kvasir::kernels::scalar {
namespace {

float half_at(const std::byte* at) {
  uint16_t half;
  std::memcpy(&half, at, sizeof(half));
  return half_to_float(half);
}

/// Calls `dot(panel, row in panel, m)` for every output of the task.
template <class Dot>
void for_outputs(const MatmulTask& task, const Dot& dot) {
  const PackedMatrix& w = *task.weights;
  for (int64_t n = task.first_panel * kPanelRows; n < task.end_panel * kPanelRows && n < w.n_rows;
       ++n) {
    const std::byte* panel = w.panels + static_cast<size_t>(n / kPanelRows) * w.panel_bytes;
    for (int64_t m = 0; m < task.input->n_rows; ++m) {
      const float sum = dot(panel, n % kPanelRows, m);
      float& y = task.output[m * task.output_stride + n];
      y = task.add_to_output ? y + sum : sum;
    }
  }
}

template <class Weight>
void matmul_dense(const MatmulTask& task, const Weight& weight) {
  const Activations& x = *task.input;
  for_outputs(task, [&](const std::byte* panel, int64_t r, int64_t m) {
    const float* row = x.values + m * x.values_stride;
    float total = 0;
    for (int64_t first = 0; first < x.n_columns; first += kDenseChunk) {
      float part = 0;
      for (int64_t k = first; k < x.n_columns && k < first + kDenseChunk; ++k)
        part = std::fmaf(weight(panel, k * kPanelRows + r), row[k], part);
      total = total + part;
    }
    return total;
  });
}

}  // namespace

void matmul_q4_1(const MatmulTask& task) {
  const Activations& x = *task.input;
  const int64_t n_groups = x.n_columns / kGroupColumns;
  for_outputs(task, [&](const std::byte* panel, int64_t r, int64_t m) {
    float sum = 0;
    for (int64_t g = 0; g < n_groups; ++g) {
      const std::byte* codes = panel + n_groups * 64 + g * 256 + r * 4;
      const int8_t* activation = x.codes + m * x.codes_stride + g * kGroupColumns;
      int32_t dot = 0;
      for (int64_t i = 0; i < 16; ++i) {
        const auto both = static_cast<uint8_t>(codes[i / 4 * 64 + i % 4]);
        dot += (both & 15) * activation[i] + (both >> 4) * activation[i + 16];
      }
      const float d = half_at(panel + g * 64 + r * 2);
      const float minimum = half_at(panel + g * 64 + 32 + r * 2);
      const ActivationGroup& group = x.groups[m * x.groups_stride + g];
      sum = std::fmaf(d * group.scale, static_cast<float>(dot), sum);
      sum = std::fmaf(minimum, group.scaled_sum, sum);
    }
    return sum;
  });
}

void matmul_q8_0(const MatmulTask& task) {
  const Activations& x = *task.input;
  const int64_t n_groups = x.n_columns / kGroupColumns;
  const int64_t scale_bytes = (n_groups * 32 + 63) / 64 * 64;
  for_outputs(task, [&](const std::byte* panel, int64_t r, int64_t m) {
    float sum = 0;
    for (int64_t g = 0; g < n_groups; ++g) {
      const std::byte* codes = panel + scale_bytes + g * 512 + r * 4;
      const int8_t* activation = x.codes + m * x.codes_stride + g * kGroupColumns;
      int32_t dot = 0;
      for (int64_t i = 0; i < kGroupColumns; ++i)
        dot += static_cast<int8_t>(codes[i / 4 * 64 + i % 4]) * activation[i];
      const float d = half_at(panel + g * 32 + r * 2);
      const ActivationGroup& group = x.groups[m * x.groups_stride + g];
      sum = std::fmaf(d * group.scale, static_cast<float>(dot), sum);
    }
    return sum;
  });
}

void matmul_f32(const MatmulTask& task) {
  matmul_dense(task, [](const std::byte* panel, int64_t i) {
    float w;
    std::memcpy(&w, panel + i * 4, sizeof(w));
    return w;
  });
}

void matmul_f16(const MatmulTask& task) {
  matmul_dense(task, [](const std::byte* panel, int64_t i) { return half_at(panel + i * 2); });
}

int64_t multiply_add_peak(int64_t rounds) {
  uint32_t sums[8] = {};
  int8_t codes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  for (int64_t round = 0; round < rounds; ++round) {
    const int8_t* x = codes;
    asm volatile("" : "+r"(x) : : "memory");
    for (int i = 0; i < 8; ++i) sums[i] += static_cast<uint32_t>(x[i] * (x[i] & 15));
  }
  asm volatile("" : : "r"(sums) : "memory");
  return rounds * 8;
}

}  // namespace kvasir::kernels::scalar
