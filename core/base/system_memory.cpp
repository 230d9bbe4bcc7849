#include "core/base/system_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace kvasir {
namespace {

std::optional<uint64_t> first_number(const std::string& text) {
  const auto at = text.find_first_of("0123456789");
  if (at == std::string::npos) return std::nullopt;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::optional<uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line)) return std::nullopt;
  return first_number(line);
}

std::optional<uint64_t> meminfo_available() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("MemAvailable:", 0) != 0) continue;
    const auto kilobytes = first_number(line);
    if (kilobytes) return *kilobytes * 1024;
  }
  return std::nullopt;
}

/// What one control group still allows: limit - use, plus the page cache it could give back.
std::optional<uint64_t> group_allows(const std::string& limit_file, const std::string& use_file,
                                     const std::string& stat_file) {
  const auto limit = number_in(limit_file);
  const auto use = number_in(use_file);
  if (!limit || !use) return std::nullopt;
  uint64_t reclaimable = 0;
  std::ifstream stat(stat_file);
  for (std::string line; std::getline(stat, line);) {
    if (line.rfind("inactive_file ", 0) == 0 || line.rfind("total_inactive_file ", 0) == 0) {
      reclaimable = std::max(reclaimable, first_number(line.substr(line.find(' '))).value_or(0));
    }
  }
  const uint64_t used = *use > reclaimable ? *use - reclaimable : 0;
  return *limit > used ? *limit - used : 0;
}

std::optional<uint64_t> control_group_allows() {
  std::optional<uint64_t> least;
  const auto consider = [&](std::optional<uint64_t> value) {
    if (value) least = least ? std::min(*least, *value) : *value;
  };
  const auto look = [&](const std::string& v2, const std::string& v1) {
    consider(group_allows(v2 + "/memory.max", v2 + "/memory.current", v2 + "/memory.stat"));
    consider(group_allows(v1 + "/memory.limit_in_bytes", v1 + "/memory.usage_in_bytes",
                          v1 + "/memory.stat"));
  };
  look("/sys/fs/cgroup", "/sys/fs/cgroup/memory");
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto colon = line.find(":/");
    if (colon == std::string::npos) continue;
    for (std::string path = line.substr(colon + 1); path.size() > 1;
         path.resize(path.rfind('/'))) {
      look("/sys/fs/cgroup" + path, "/sys/fs/cgroup/memory" + path);
    }
  }
  return least;
}

}  // namespace

uint64_t available_memory_bytes() {
  const auto system = meminfo_available();
  const auto group = control_group_allows();
  if (system && group) return std::min(*system, *group);
  return system.value_or(group.value_or(0));
}

uint64_t peak_resident_bytes() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace kvasir
