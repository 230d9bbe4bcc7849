#include "cpu_kernels/amx_choice.h"

#include <chrono>
#include <vector>

namespace kvasir::kernels {
namespace {

constexpr int64_t kRows = 64;
constexpr int64_t kColumns = 1024;
constexpr int64_t kPanels = 4;

/// Memory for one product, on a 64-byte line; all zeros, which takes as long as any numbers.
class Zeros {
 public:
  explicit Zeros(size_t bytes) : memory_(bytes + 64) {}
  std::byte* data() {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    return memory_.data() + (64 - address % 64) % 64;
  }

 private:
  std::vector<std::byte> memory_;
};

/// Best of 3, in seconds.
double time_of(void (*multiply)(const MatmulTask&), const MatmulTask& task) {
  double best = 1e9;
  for (int i = 0; i < 4; ++i) {  // the first one warms up
    const auto start = std::chrono::steady_clock::now();
    multiply(task);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    if (i > 0 && time.count() < best) best = time.count();
  }
  return best;
}

}  // namespace

KernelTable with_matmuls(KernelTable table, const KernelTable& matmuls) {
  for (size_t f = 0; f < static_cast<size_t>(WeightFormat::count); ++f) {
    if (matmuls.matmul[f] != nullptr) table.matmul[f] = matmuls.matmul[f];
  }
  return table;
}

KernelTable with_faster_matmuls(KernelTable table, const KernelTable& matmuls) {
  Zeros codes(kRows * kColumns);
  Zeros groups(kRows * kColumns / 32 * sizeof(ActivationGroup));
  Zeros wide_groups(kRows * kColumns / 256 * sizeof(WideActivationGroup));
  Zeros output(kRows * kPanels * kPanelRows * sizeof(float));
  Zeros scratch(kMatmulScratchBytes);
  Activations x{kRows, kColumns};
  x.codes = x.wide_codes = reinterpret_cast<const int8_t*>(codes.data());
  x.codes_stride = kColumns;
  x.groups = reinterpret_cast<const ActivationGroup*>(groups.data());
  x.groups_stride = kColumns / 32;
  x.wide_groups = reinterpret_cast<const WideActivationGroup*>(wide_groups.data());
  x.wide_groups_stride = kColumns / 256;
  for (size_t f = 0; f < static_cast<size_t>(WeightFormat::count); ++f) {
    if (matmuls.matmul[f] == nullptr) continue;
    const auto format = static_cast<WeightFormat>(f);
    const size_t panel_bytes = packed_panel_bytes(format, kColumns);
    Zeros panels(kPanels * panel_bytes);
    const PackedMatrix matrix{format, kPanels * kPanelRows, kColumns, panels.data(), panel_bytes};
    const MatmulTask task{.weights = &matrix,
                          .input = &x,
                          .output = reinterpret_cast<float*>(output.data()),
                          .output_stride = kPanels * kPanelRows,
                          .first_panel = 0,
                          .end_panel = kPanels,
                          .add_to_output = false,
                          .scratch = scratch.data()};
    if (time_of(matmuls.matmul[f], task) < time_of(table.matmul[f], task))
      table.matmul[f] = matmuls.matmul[f];
  }
  return table;
}

}  // namespace kvasir::kernels
