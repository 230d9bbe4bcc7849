// This machine and this program, for people: names of parts and libraries.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kvasir::cli {

/// As /proc/cpuinfo spells it; "unknown" without it.
std::string cpu_name();

/// Those of the CPU's features that kernels use or could use, as /proc/cpuinfo spells them.
std::vector<std::string> cpu_features();

/// Name and version of every library the program uses.
std::vector<std::pair<std::string, std::string>> library_versions();

}  // namespace kvasir::cli
