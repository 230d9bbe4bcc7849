// How many threads this machine should use: affinity, cgroup quota, physical performance cores.
#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/threads/threads.h"

namespace kvasir {
namespace {

std::optional<std::string> read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line)) return std::nullopt;
  return line;
}

std::optional<int64_t> to_int(const std::string& text) {
  int64_t value = 0;
  bool any = false;
  for (const char c : text) {
    if (c < '0' || c > '9') break;
    if (value > INT64_MAX / 10 - 10) return std::nullopt;
    value = value * 10 + (c - '0');
    any = true;
  }
  if (!any) return std::nullopt;
  return value;
}

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return {0};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

/// Folders of this process's control group and its parents: v2 under /sys/fs/cgroup, v1's cpu
/// controller under /sys/fs/cgroup/cpu. Inside a container the path may be "/".
std::vector<std::string> cgroup_folders(const std::string& root) {
  const std::string v2_folder = root + "/sys/fs/cgroup";
  const std::string v1_folder = root + "/sys/fs/cgroup/cpu";
  std::vector<std::string> folders = {v2_folder, v1_folder};
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto path_at = line.find(":/");
    if (path_at == std::string::npos) continue;
    std::string path = line.substr(path_at + 1);
    const bool v2 = line.rfind("0::", 0) == 0;
    for (; path.size() > 1; path.resize(path.rfind('/')))
      folders.push_back((v2 ? v2_folder : v1_folder) + path);
  }
  return folders;
}

/// Distinct physical cores among `cpus`, those of at least 3/4 of the best capacity (on hybrid
/// machines the slow cores hold up every barrier). Capacity: cpu_capacity on ARM, the highest
/// frequency elsewhere; unknown counts as fast.
int physical_cores(const std::vector<int>& cpus) {
  struct Cpu {
    std::string core;
    int64_t capacity;
  };
  std::vector<Cpu> found;
  int64_t best = 0;
  for (const int cpu : cpus) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu{}", cpu);
    const auto siblings = read_line(folder + "/topology/thread_siblings_list");
    auto capacity = read_line(folder + "/cpu_capacity");
    if (!capacity) capacity = read_line(folder + "/cpufreq/cpuinfo_max_freq");
    const int64_t value = capacity ? to_int(*capacity).value_or(0) : 0;
    found.push_back({siblings.value_or(std::to_string(cpu)), value});
    best = std::max(best, value);
  }
  std::set<std::string> cores;
  for (const auto& cpu : found) {
    if (cpu.capacity == 0 || cpu.capacity * 4 >= best * 3) cores.insert(cpu.core);
  }
  return std::max<int>(1, static_cast<int>(cores.size()));
}

}  // namespace

double cgroup_cpu_quota(const std::string& root) {
  double least = 0;
  const auto consider = [&](std::optional<int64_t> quota, std::optional<int64_t> period) {
    if (!quota || !period || *quota <= 0 || *period <= 0) return;
    const double cpus = static_cast<double>(*quota) / static_cast<double>(*period);
    least = least == 0 ? cpus : std::min(least, cpus);
  };
  for (const auto& folder : cgroup_folders(root)) {
    if (const auto line = read_line(folder + "/cpu.max")) {
      std::istringstream words(*line);
      std::string quota, period;
      words >> quota >> period;
      consider(to_int(quota), to_int(period));  // "max 100000" has no number first
    }
    if (const auto quota = read_line(folder + "/cpu.cfs_quota_us")) {
      const auto period = read_line(folder + "/cpu.cfs_period_us");
      if (period) consider(to_int(*quota), to_int(*period));  // "-1": unlimited
    }
  }
  return least;
}

ThreadAdvice advise_threads() {
  ThreadAdvice advice;
  const auto cpus = allowed_cpus();
  advice.affinity = std::max<int>(1, static_cast<int>(cpus.size()));
  advice.physical_cores = physical_cores(cpus);
  advice.cgroup_quota = cgroup_cpu_quota();
  advice.count = std::min(advice.affinity, advice.physical_cores);
  std::string limit = advice.physical_cores < advice.affinity ? "physical performance cores"
                                                              : "CPUs this process may run on";
  if (advice.cgroup_quota > 0) {
    // A quota of 1.5 CPUs runs two threads at three quarters; rounding up would be throttled at
    // every barrier, so round down.
    const int quota = std::max(1, static_cast<int>(advice.cgroup_quota));
    if (quota < advice.count) {
      advice.count = quota;
      limit = "CPU quota of the control group";
    }
  }
  advice.reason = fmt::format("{} thread{}: the number of {}", advice.count,
                              advice.count == 1 ? "" : "s", limit);
  return advice;
}

}  // namespace kvasir
