// Products of f32 and f16 weights: one row (memory), a few (batch decoding), many (prefill).
#include "benchmarks/kernels/tables.h"

namespace kvasir::kernels::bench {
namespace {

void run_dense(benchmark::State& state, const KernelTable* table, WeightFormat format,
               int64_t n_rows, int64_t n_outputs, int64_t n_columns) {
  const size_t panel_bytes = packed_panel_bytes(format, n_columns);
  const int64_t n_panels = (n_outputs + kPanelRows - 1) / kPanelRows;
  Memory weights(panel_bytes * static_cast<size_t>(n_panels));
  const size_t element = format == WeightFormat::f32 ? 4 : 2;
  for (size_t i = 0; i < panel_bytes * static_cast<size_t>(n_panels); i += element) {
    const float one = 1.0F;
    const uint16_t half_one = 0x3C00;
    if (format == WeightFormat::f32) {
      __builtin_memcpy(weights.data() + i, &one, 4);
    } else {
      __builtin_memcpy(weights.data() + i, &half_one, 2);
    }
  }
  const PackedMatrix matrix{format, n_outputs, n_columns, weights.data(), panel_bytes};
  const auto x = random_floats(static_cast<size_t>(n_rows * n_columns));
  const Activations input{n_rows, n_columns, x.data(), n_columns};
  Memory output(static_cast<size_t>(n_rows * n_outputs) * sizeof(float));
  Memory scratch(kMatmulScratchBytes);
  const auto multiply = table->matmul[static_cast<int>(format)];
  for (auto _ : state) {
    multiply({&matrix, &input, output.floats(), n_outputs, 0, n_panels, false, scratch.data()});
    benchmark::ClobberMemory();
  }
  report(state, 2 * static_cast<double>(n_rows * n_outputs) * static_cast<double>(n_columns),
         static_cast<double>(panel_bytes) * static_cast<double>(n_panels));
}

}  // namespace

void register_dense() {
  for (const KernelTable* table : vector_tables()) {
    for (const WeightFormat format : {WeightFormat::f32, WeightFormat::f16}) {
      for (const int64_t n_columns : {576, 4096}) {
        for (const int64_t n_rows : {1, 2, 3, 4, 6, 8, 12, 128}) {
          const int64_t n_outputs = n_rows <= 4 ? 8192 : 1024;
          const std::string name = std::string("dense/") + table->name +
                                   (format == WeightFormat::f32 ? "/f32" : "/f16") + "/columns:" +
                                   std::to_string(n_columns) + "/rows:" + std::to_string(n_rows);
          benchmark::RegisterBenchmark(name.c_str(), run_dense, table, format, n_rows, n_outputs,
                                       n_columns);
        }
      }
    }
  }
}

}  // namespace kvasir::kernels::bench
