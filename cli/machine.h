// Names of this machine's parts.
#pragma once

#include <string>

namespace kvasir::cli {

/// As /proc/cpuinfo spells it; "unknown" without it.
std::string cpu_name();

/// "scalar, avx2, ...": the kernel tables this CPU can run.
std::string available_kernels();

}  // namespace kvasir::cli
