// The products of AMX with tiles in plain code: everything else of them runs on AVX-512 VNNI.
// Compiled with that set's flags; called only where the CPU has it.
#include "cpu_kernels/amx/products.h"

namespace kvasir::kernels::test {
namespace {

struct PlainTiles {
  static inline thread_local int n_lines = 0;  // 0: not configured

  KVASIR_INLINE void configure(int lines) { n_lines = lines; }
  KVASIR_INLINE void release() { n_lines = 0; }
  /// As the instructions' manual says: every sum of four products is added to an int32.
  static void multiply(const int8_t* x, int64_t stride, const std::byte* lines, int32_t* sums) {
    for (int m = 0; m < 16; ++m) {
      for (int n = 0; n < 16; ++n) {
        int32_t sum = n_lines == 0 ? 1 : 0;  // wrong on purpose without a configuration
        for (int k = 0; k < 4 * n_lines; ++k) {
          const auto code = static_cast<uint8_t>(lines[k / 4 * 64 + n * 4 + k % 4]);
          sum += x[m * stride + k] * code;
        }
        sums[m * 16 + n] = sum;
      }
    }
  }
};

constexpr KernelTable make_matmuls() {
  KernelTable table = {};
  amx::put_matmuls<amx::Vocabulary<PlainTiles>>(table);
  return table;
}

}  // namespace

extern constexpr KernelTable kEmulatedAmx = make_matmuls();

}  // namespace kvasir::kernels::test
