// This machine and this program, for people: names of parts, kernels, libraries.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cpu_kernels/kernels.h"
#include "kvasir/result.h"

namespace kvasir::cli {

/// As /proc/cpuinfo spells it; "unknown" without it.
std::string cpu_name();

/// Those of the CPU's features that kernels use or could use, as /proc/cpuinfo spells them.
std::vector<std::string> cpu_features();

/// "scalar, avx2, ...": the kernel tables this CPU can run.
std::string available_kernels();

/// The kernel table in use and why: the best one, or the one KVASIR_ISA names.
struct ChosenKernels {
  const kernels::KernelTable* table = nullptr;
  std::string reason;
};
/// unsupported when KVASIR_ISA names an unknown or unavailable one, with the available ones.
Result<ChosenKernels> choose_kernels();
Status check_forced_kernels();

/// Name and version of every library the program uses.
std::vector<std::pair<std::string, std::string>> library_versions();

}  // namespace kvasir::cli
