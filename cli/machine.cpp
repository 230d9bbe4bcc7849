#include "cli/machine.h"

#include <fstream>

#include "cpu_kernels/kernels.h"

namespace kvasir::cli {

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos)
      return line.substr(colon + 2);
  }
  return "unknown";
}

std::string available_kernels() {
  int count = 0;
  const auto* choices = kernels::kernel_choices(&count);
  std::string names;
  for (int i = 0; i < count; ++i) {
    if (!choices[i].cpu_has_it) continue;
    names += names.empty() ? "" : ", ";
    names += choices[i].name;
  }
  return names;
}

}  // namespace kvasir::cli
