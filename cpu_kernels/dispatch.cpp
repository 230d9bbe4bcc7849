// The ordered list of kernel tables, and the choice among them.
#include <cstring>
#include <iterator>

#include "cpu_kernels/amx_choice.h"
#include "cpu_kernels/cpu.h"
#include "cpu_kernels/kernels.h"

namespace kvasir::kernels {

#if defined(__x86_64__)
namespace avx2 {
extern const KernelTable kTable;
}
namespace avxvnni {
extern const KernelTable kTable;
}
namespace avx512 {
extern const KernelTable kTable;
}
namespace avx512vnni {
extern const KernelTable kTable;
}
namespace amx {
extern const KernelTable kMatmuls;
}
#elif defined(__aarch64__)
namespace neon {
extern const KernelTable kTable;
}
namespace neondotprod {
extern const KernelTable kTable;
}
#endif

namespace {

/// Worst first.
struct Choices {
  Choices() {
    [[maybe_unused]] const CpuFeatures cpu = detect_cpu();
    add({&scalar_kernels(), "scalar", "nothing", true}, "");
#if defined(__x86_64__)
    add({&avx2::kTable, "avx2", "AVX2, FMA and F16C", cpu.avx2},
        "this CPU or its system lacks AVX2, FMA or F16C");
    add({&avxvnni::kTable, "avxvnni", "AVX2 and AVX-VNNI", cpu.avxvnni},
        "this CPU or its system lacks AVX-VNNI");
    add({&avx512::kTable, "avx512", "AVX-512 F, CD, BW, DQ and VL", cpu.avx512},
        "this CPU or its system lacks AVX-512 F, CD, BW, DQ or VL");
    add({&avx512vnni::kTable, "avx512vnni", "AVX-512 with VNNI", cpu.avx512vnni},
        "this CPU or its system lacks AVX-512 VNNI");
    tiles = with_matmuls(avx512vnni::kTable, amx::kMatmuls);
    tiles.name = "amx";
    add({&tiles, "amx", "AVX-512 with VNNI, AMX tiles of int8", cpu.amx},
        "this CPU or its system lacks AMX tiles of int8");
    if (cpu.amx) {
      best_of_tiles = with_faster_matmuls(avx512vnni::kTable, amx::kMatmuls);
      best_of_tiles.name = "amx";
    }
#elif defined(__aarch64__)
    add({&neon::kTable, "neon", "AArch64 Advanced SIMD", cpu.neon}, "this CPU lacks Advanced SIMD");
    add({&neondotprod::kTable, "neon-dotprod", "Advanced SIMD with dot products", cpu.neon_dotprod},
        "this CPU lacks the dot product extension");
#endif
  }
  void add(const KernelChoice& choice, const char* lacking) {
    all[count] = choice;
    lacks[count++] = lacking;
  }
  KernelTable tiles{};          ///< AMX wherever it can be used
  KernelTable best_of_tiles{};  ///< AMX where it is faster; unset where there is none
  KernelChoice all[8];
  const char* lacks[8];  ///< what to say when the CPU cannot run it
  int count = 0;
};

const Choices& choices() {
  static const Choices kChoices;
  return kChoices;
}

}  // namespace

const KernelChoice* kernel_choices(int* count) {
  *count = choices().count;
  return choices().all;
}

const KernelTable* choose_kernels(const char* forced, const char** why) {
  const Choices& known = choices();
  const bool any = forced == nullptr || *forced == '\0';
  *why = any ? "the best this CPU has" : "unknown instruction set";
  for (int i = known.count - 1; i >= 0; --i) {
    const KernelChoice& choice = known.all[i];
    if (any ? !choice.cpu_has_it : std::strcmp(choice.name, forced) != 0) continue;
    if (choice.cpu_has_it) {
      const bool measured = any && choice.table == &known.tiles;
      return measured ? &known.best_of_tiles : choice.table;
    }
    *why = known.lacks[i];
    return nullptr;
  }
  return nullptr;
}

}  // namespace kvasir::kernels
