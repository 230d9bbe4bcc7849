#include "benchmarks/kernels/tables.h"

int main(int argc, char** argv) {
  kvasir::kernels::bench::register_attention();
  kvasir::kernels::bench::register_dense();
  kvasir::kernels::bench::register_elementwise();
  kvasir::kernels::bench::register_quantized();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
