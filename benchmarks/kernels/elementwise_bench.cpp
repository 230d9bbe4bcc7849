// Norms, activations, quantising, softmax: 576 and 4,096 floats, as a layer of a small and of a large
// model has them. bytes/s counts what is read and written once.
#include "benchmarks/kernels/tables.h"

namespace kvasir::kernels::bench {
namespace {

struct Arrays {
  explicit Arrays(int64_t n)
      : a(random_floats(static_cast<size_t>(n))), b(a), y(a), codes(static_cast<size_t>(n)),
        groups(static_cast<size_t>(n / kGroupColumns)) {}
  std::vector<float> a, b, y;
  Memory codes;
  std::vector<ActivationGroup> groups;
};

/// `use(arrays)` once an iteration; it touches `bytes` bytes a float.
template <class Use>
void add_benchmark(const char* what, const KernelTable* table, double bytes, const Use& use) {
  for (const int64_t n : {576, 4096}) {
    const std::string name = std::string(what) + "/" + table->name + "/n:" + std::to_string(n);
    benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
      Arrays arrays(n);
      for (auto _ : state) {
        use(arrays, n);
        benchmark::ClobberMemory();
      }
      report(state, 0, bytes * static_cast<double>(n));
    });
  }
}

}  // namespace

void register_elementwise() {
  for (const KernelTable* table : vector_tables()) {
    add_benchmark("rms_norm", table, 12, [=](Arrays& x, int64_t n) {
      table->rms_norm(x.a.data(), x.b.data(), 1e-5F, x.y.data(), n);
    });
    add_benchmark("swiglu", table, 12, [=](Arrays& x, int64_t n) {
      table->swiglu(x.a.data(), x.b.data(), x.y.data(), n);
    });
    add_benchmark("geglu", table, 12, [=](Arrays& x, int64_t n) {
      table->geglu(x.a.data(), x.b.data(), x.y.data(), n);
    });
    add_benchmark("add", table, 12, [=](Arrays& x, int64_t n) {
      table->add(x.a.data(), x.b.data(), x.y.data(), n);
    });
    add_benchmark("quantize", table, 5.5, [=](Arrays& x, int64_t n) {
      table->quantize(x.a.data(), n, reinterpret_cast<int8_t*>(x.codes.data()), x.groups.data());
    });
    add_benchmark("softmax", table, 8, [=](Arrays& x, int64_t n) {
      x.y[0] = 1;  // otherwise the same softmax of a softmax for ever, towards uniform
      table->softmax(x.y.data(), n);
    });
    add_benchmark("rope", table, 8, [=](Arrays& x, int64_t n) {
      table->rope(x.y.data(), n / 64, 64, 64, x.a.data(), x.b.data(), RopePairs::half_split);
    });
    add_benchmark("argmax", table, 4, [=](Arrays& x, int64_t n) {
      benchmark::DoNotOptimize(table->argmax(x.a.data(), n));
    });
    add_benchmark("all_finite", table, 4, [=](Arrays& x, int64_t n) {
      benchmark::DoNotOptimize(table->all_finite(x.a.data(), n));
    });
  }
}

}  // namespace kvasir::kernels::bench
