// Products of quantised weights in the shapes of a 135M Llama (blocks of 32) and a 1.5B Qwen (of
// 256): one row (weights from memory or L3), a few (batch decoding), many (prefill). "mul_add/s"
// counts multiply-adds, "bytes/s" packed weights. quantized/ISA/peak is the limit they are held
// against.
#include "benchmarks/kernels/tables.h"
#include "tests/kernels/file_blocks.h"

namespace kvasir::kernels::bench {
namespace {

struct Shape {
  int64_t n_outputs;
  int64_t n_columns;
};
constexpr Shape kShapes[3] = {{1536, 576}, {576, 1536}, {49152, 576}};
constexpr Shape kWideShapes[3] = {{1536, 1536}, {8960, 1536}, {1536, 8960}};

void run_quantized(benchmark::State& state, const KernelTable* table, WeightFormat format,
                   int64_t n_rows, Shape shape) {
  const size_t panel_bytes = packed_panel_bytes(format, shape.n_columns);
  const int64_t n_panels = (shape.n_outputs + kPanelRows - 1) / kPanelRows;
  const size_t bytes = panel_bytes * static_cast<size_t>(n_panels);
  Memory weights(bytes);
  // One panel's rows again and again: what they hold changes no speed.
  const auto source =
      test::file_matrix(format, kPanelRows, shape.n_columns, 1, test::Codes::random);
  for (int64_t panel = 0; panel < n_panels; ++panel) {
    pack_panel(format, source.data(), test::file_row_bytes(format, shape.n_columns), kPanelRows,
               shape.n_columns, 0, weights.data() + panel_bytes * static_cast<size_t>(panel));
  }
  const PackedMatrix matrix{format, shape.n_outputs, shape.n_columns, weights.data(), panel_bytes};
  const auto x = random_floats(static_cast<size_t>(n_rows * shape.n_columns));
  const int64_t codes_stride = (shape.n_columns + 63) / 64 * 64;
  Memory codes(static_cast<size_t>(n_rows * codes_stride));
  std::vector<ActivationGroup> groups(static_cast<size_t>(n_rows * (shape.n_columns / 32)));
  std::vector<WideActivationGroup> wide_groups(
      static_cast<size_t>(n_rows * (shape.n_columns / 256)));
  const auto* code_rows = reinterpret_cast<const int8_t*>(codes.data());
  Activations input{n_rows, shape.n_columns};
  input.codes_stride = codes_stride;
  for (int64_t m = 0; m < n_rows; ++m) {
    auto* row = reinterpret_cast<int8_t*>(codes.data()) + m * codes_stride;
    if (input_form(format) == InputForm::groups) {
      table->quantize(x.data() + m * shape.n_columns, shape.n_columns, row,
                      groups.data() + m * (shape.n_columns / 32));
    } else {
      table->quantize_wide(x.data() + m * shape.n_columns, shape.n_columns, row,
                           wide_groups.data() + m * (shape.n_columns / 256));
    }
  }
  input.codes = input.wide_codes = code_rows;
  input.groups = groups.data();
  input.groups_stride = shape.n_columns / 32;
  input.wide_groups = wide_groups.data();
  input.wide_groups_stride = shape.n_columns / 256;
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
    for (int f = 0; f < static_cast<int>(WeightFormat::count); ++f) {
      const auto format = static_cast<WeightFormat>(f);
      if (input_form(format) == InputForm::floats) continue;
      const bool wide = input_form(format) == InputForm::wide_groups;
      for (const Shape& shape : wide ? kWideShapes : kShapes) {
        for (const int64_t n_rows : {1, 2, 4, 8, 16, 64, 512}) {
          if (n_rows > 64 && shape.n_outputs > 10000)
            continue;  // a prompt's last row asks for logits
          const std::string name =
              std::string("quantized/") + table->name + "/" + format_name(format) +
              "/outputs:" + std::to_string(shape.n_outputs) +
              "/columns:" + std::to_string(shape.n_columns) + "/rows:" + std::to_string(n_rows);
          benchmark::RegisterBenchmark(name.c_str(), run_quantized, table, format, n_rows, shape);
        }
      }
    }
  }
}

}  // namespace kvasir::kernels::bench
