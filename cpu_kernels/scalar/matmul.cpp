// Matrix products, one output at a time: the definition.
#include <cmath>
#include <cstring>

#include "cpu_kernels/formats/rows.h"
#include "cpu_kernels/scalar/definitions.h"

namespace kvasir::kernels::scalar {
namespace {

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

void matmul_quantized(const MatmulTask& task) {
  const PackedMatrix& w = *task.weights;
  const Activations& x = *task.input;
  const formats::Format& format = *formats::find_format(w.format);
  const bool wide = format.group_columns == kWideGroupColumns;
  const int64_t n_groups = w.n_columns / format.group_columns;
  const int64_t sub_columns = format.group_columns / format.n_sub_blocks;
  // Running sums of at most this many rows live in the scratch; each row's are its own.
  auto* sums = reinterpret_cast<float*>(task.scratch);
  constexpr auto kMost = static_cast<int64_t>(kMatmulScratchBytes / sizeof(float));
  for (int64_t n = task.first_panel * kPanelRows; n < task.end_panel * kPanelRows && n < w.n_rows;
       ++n) {
    const std::byte* panel = w.panels + static_cast<size_t>(n / kPanelRows) * w.panel_bytes;
    const std::byte* codes = panel + formats::scales_part_bytes(format, n_groups);
    for (int64_t first = 0; first < x.n_rows; first += kMost) {
      const int64_t end = x.n_rows - first < kMost ? x.n_rows : first + kMost;
      for (int64_t m = first; m < end; ++m) sums[m - first] = 0;
      for (int64_t g = 0; g < n_groups; ++g) {
        formats::RowGroup group;
        format.read(panel + g * format.scale_bytes, codes + g * format.code_bytes, n % kPanelRows,
                    group);
        for (int64_t m = first; m < end; ++m) {
          const int8_t* activation = (wide ? x.wide_codes : x.codes) + m * x.codes_stride +
                                     g * format.group_columns;
          int32_t dot = 0, low = 0;
          for (int64_t s = 0; s < format.n_sub_blocks; ++s) {
            int32_t part = 0, sum = 0;
            for (int64_t c = s * sub_columns; c < (s + 1) * sub_columns; ++c) {
              part += group.codes[c] * activation[c];
              sum += activation[c];
            }
            dot += group.scales[s] * part;
            low += group.minimums[s] * sum;
          }
          float& acc = sums[m - first];
          if (wide) {
            const float scale = x.wide_groups[m * x.wide_groups_stride + g].scale;
            acc = std::fmaf(group.d * scale, static_cast<float>(dot), acc);
            if (format.has_minimum)
              acc = std::fmaf(group.m * scale, static_cast<float>(low), acc);
          } else {
            const ActivationGroup& input = x.groups[m * x.groups_stride + g];
            acc = std::fmaf(group.d * input.scale, static_cast<float>(dot), acc);
            if (format.has_minimum) acc = std::fmaf(group.m, input.scaled_sum, acc);
          }
        }
      }
      for (int64_t m = first; m < end; ++m) {
        float& y = task.output[m * task.output_stride + n];
        y = task.add_to_output ? y + sums[m - first] : sums[m - first];
      }
    }
  }
}

void matmul_f32(const MatmulTask& task) {
  matmul_dense(task, [](const std::byte* panel, int64_t i) {
    float w;
    std::memcpy(&w, panel + i * 4, sizeof(w));
    return w;
  });
}

void matmul_f16(const MatmulTask& task) {
  matmul_dense(task,
               [](const std::byte* panel, int64_t i) { return formats::half_at(panel + i * 2); });
}

void matmul_bf16(const MatmulTask& task) {
  matmul_dense(task, [](const std::byte* panel, int64_t i) {
    const uint32_t bits = static_cast<uint32_t>(formats::load_u16(panel + i * 2)) << 16;
    float w;
    std::memcpy(&w, &bits, sizeof(w));
    return w;
  });
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
