#include "core/engine/kernel_choice.h"

#include <cstdlib>

#include "core/base/error.h"

namespace kvasir {

std::vector<KernelSet> kernel_sets() {
  int count = 0;
  const auto* choices = kernels::kernel_choices(&count);
  std::vector<KernelSet> sets;
  for (int i = 0; i < count; ++i)
    sets.push_back({choices[i].name, choices[i].needs, choices[i].cpu_has_it});
  return sets;
}

Result<KernelChoice> choose_kernels() {
  const char* forced = std::getenv("KVASIR_ISA");
  const char* why = "";
  const auto* table = kernels::choose_kernels(forced, &why);
  const bool is_forced = forced != nullptr && *forced != '\0';
  if (table != nullptr) return KernelChoice{table, is_forced ? "forced by KVASIR_ISA" : why};
  std::string available;
  for (const auto& set : kernel_sets()) {
    if (!set.available) continue;
    available += available.empty() ? "" : ", ";
    available += set.name;
  }
  return make_error(ErrorCode::unsupported, "KVASIR_ISA is '{}': {}; available: {}", forced, why,
                    available);
}

}  // namespace kvasir
