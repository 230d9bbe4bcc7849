// The ordered list of kernel tables, and the choice among them.
#include <cstring>
#include <iterator>

#include "cpu_kernels/cpu.h"
#include "cpu_kernels/kernels.h"

namespace kvasir::kernels {

#if defined(__x86_64__)
namespace avx2 {
extern const KernelTable kTable;
}
namespace avx512 {
extern const KernelTable kTable;
}
namespace avx512vnni {
extern const KernelTable kTable;
}
#elif defined(__aarch64__)
namespace neon {
extern const KernelTable kTable;
}
#endif

namespace {

/// Worst first.
struct Choices {
  Choices() {
    [[maybe_unused]] const CpuFeatures cpu = detect_cpu();
    add({&scalar_kernels(), "scalar", "nothing", true});
#if defined(__x86_64__)
    add({&avx2::kTable, "avx2", "AVX2, FMA and F16C", cpu.avx2});
    add({&avx512::kTable, "avx512", "AVX-512 F, CD, BW, DQ and VL", cpu.avx512});
    add({&avx512vnni::kTable, "avx512vnni", "AVX-512 with VNNI", cpu.avx512vnni});
#elif defined(__aarch64__)
    add({&neon::kTable, "neon", "AArch64 Advanced SIMD", cpu.neon});
#endif
  }
  void add(const KernelChoice& choice) { all[count++] = choice; }
  KernelChoice all[8];
  int count = 0;
};

}  // namespace

const KernelChoice* kernel_choices(int* count) {
  static const Choices choices;
  *count = choices.count;
  return choices.all;
}

const KernelTable* choose_kernels(const char* forced, const char** why) {
  int count = 0;
  const KernelChoice* choices = kernel_choices(&count);
  const bool any = forced == nullptr || *forced == '\0';
  *why = any ? "the best this CPU has" : "this build does not know it";
  for (int i = count - 1; i >= 0; --i) {
    if (any ? choices[i].cpu_has_it : std::strcmp(choices[i].name, forced) == 0) {
      if (choices[i].cpu_has_it) return choices[i].table;
      *why = "this CPU lacks it";
      return nullptr;
    }
  }
  return nullptr;
}

}  // namespace kvasir::kernels
