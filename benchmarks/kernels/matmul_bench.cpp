// Products of quantised weights in the shapes of a 135M Llama: one row (weights from memory or L3),
// a few (batch decoding), many (prefill). "mul_add/s" counts multiply-adds, "bytes/s" packed
// weights.
// quantized/ISA/peak is the limit they are held against.
#include "benchmarks/kernels/tables.h"

namespace kvasir::kernels::bench {
namespace {

struct Shape {
  int64_t n_outputs;
  int64_t n_columns;
};
constexpr Shape kShapes[] = {{1536, 576}, {576, 1536}, {49152, 576}};

/// Panels of random codes; every scale and minimum is 2^-7 (0x2000 as a half).
void fill(Memory& weights, size_t bytes, size_t panel_bytes, size_t scale_bytes) {
  std::mt19937 random(1);
  for (size_t i = 0; i < bytes; i += 4) {
    const auto codes = static_cast<uint32_t>(random());
    const uint32_t scales = 0x20002000;
    __builtin_memcpy(weights.data() + i, i % panel_bytes < scale_bytes ? &scales : &codes, 4);
  }
}

void run_quantized(benchmark::State& state, const KernelTable* table, WeightFormat format,
                   int64_t n_rows, Shape shape) {
  const int64_t n_groups = shape.n_columns / kGroupColumns;
  const size_t panel_bytes = packed_panel_bytes(format, shape.n_columns);
  const int64_t n_panels = (shape.n_outputs + kPanelRows - 1) / kPanelRows;
  const size_t bytes = panel_bytes * static_cast<size_t>(n_panels);
  Memory weights(bytes);
  fill(weights, bytes, panel_bytes,
       static_cast<size_t>(n_groups * (format == WeightFormat::q4_1 ? 64 : 32)));
  const PackedMatrix matrix{format, shape.n_outputs, shape.n_columns, weights.data(), panel_bytes};
  const auto x = random_floats(static_cast<size_t>(n_rows * shape.n_columns));
  const int64_t codes_stride = (shape.n_columns + 63) / 64 * 64;
  Memory codes(static_cast<size_t>(n_rows * codes_stride));
  std::vector<ActivationGroup> groups(static_cast<size_t>(n_rows * n_groups));
  for (int64_t m = 0; m < n_rows; ++m) {
    table->quantize(x.data() + m * shape.n_columns, shape.n_columns,
                    reinterpret_cast<int8_t*>(codes.data()) + m * codes_stride,
                    groups.data() + m * n_groups);
  }
  const Activations input{
      n_rows,       shape.n_columns, nullptr, 0, reinterpret_cast<const int8_t*>(codes.data()),
      codes_stride, groups.data(),   n_groups};
  Memory output(static_cast<size_t>(n_rows * shape.n_outputs) * sizeof(float));
  Memory scratch(kMatmulScratchBytes);
  const auto multiply = table->matmul[static_cast<int>(format)];
  for (auto _ : state) {
    multiply(
        {&matrix, &input, output.floats(), shape.n_outputs, 0, n_panels, false, scratch.data()});
    benchmark::ClobberMemory();
  }
  const auto n = static_cast<double>(state.iterations());
  using benchmark::Counter;
  state.counters["mul_add/s"] = Counter(
      static_cast<double>(n_rows * shape.n_outputs * shape.n_columns) * n, Counter::kIsRate);
  state.counters["bytes/s"] = Counter(static_cast<double>(bytes) * n, Counter::kIsRate);
}

void run_peak(benchmark::State& state, const KernelTable* table) {
  int64_t done = 0;
  for (auto _ : state) done += table->multiply_add_peak(1000);
  state.counters["mul_add/s"] =
      benchmark::Counter(static_cast<double>(done), benchmark::Counter::kIsRate);
}

}  // namespace

void register_quantized() {
  for (const KernelTable* table : vector_tables()) {
    benchmark::RegisterBenchmark(("quantized/" + std::string(table->name) + "/peak").c_str(),
                                 run_peak, table);
    for (const WeightFormat format : {WeightFormat::q4_1, WeightFormat::q8_0}) {
      for (const Shape& shape : kShapes) {
        for (const int64_t n_rows : {1, 2, 4, 8, 16, 64, 512}) {
          if (n_rows > 64 && shape.n_outputs > 2048)
            continue;  // a prompt's last row asks for logits
          const std::string name = std::string("quantized/") + table->name +
                                   (format == WeightFormat::q4_1 ? "/q4_1" : "/q8_0") +
                                   "/outputs:" + std::to_string(shape.n_outputs) +
                                   "/columns:" + std::to_string(shape.n_columns) +
                                   "/rows:" + std::to_string(n_rows);
          benchmark::RegisterBenchmark(name.c_str(), run_quantized, table, format, n_rows, shape);
        }
      }
    }
  }
}

}  // namespace kvasir::kernels::bench
