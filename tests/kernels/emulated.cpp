// Tables of instruction sets that are tested by emulation where the CPU lacks them.
#include "cpu_kernels/amx_choice.h"
#include "tests/kernels/isas.h"

namespace kvasir::kernels::test {

#if defined(__x86_64__)

extern const KernelTable kEmulatedAmx;

std::vector<const KernelTable*> emulated_tables() {
  int count = 0;
  const KernelChoice* choices = kernel_choices(&count);
  const KernelTable* vnni = nullptr;
  for (int i = 0; i < count; ++i) {
    const std::string name = choices[i].name;
    if (name == "avx512vnni" && choices[i].cpu_has_it) vnni = choices[i].table;
    if (name == "amx" && choices[i].cpu_has_it) return {};  // the real one is among the choices
  }
  if (vnni == nullptr) return {};
  static const KernelTable kTable = [vnni] {
    KernelTable table = with_matmuls(*vnni, kEmulatedAmx);
    table.name = "amx with emulated tiles";
    return table;
  }();
  return {&kTable};
}

#else

std::vector<const KernelTable*> emulated_tables() {
  return {};
}

#endif

}  // namespace kvasir::kernels::test
