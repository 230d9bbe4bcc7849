// kvasir system: what this machine is, and what was chosen for it.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <memory>

#include "cli/commands.h"
#include "cli/machine.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "core/base/system_memory.h"
#include "core/engine/machine_limits.h"
#include "core/threads/threads.h"
#include "kvasir/version.h"

namespace kvasir::cli {
namespace {

struct Options {
  bool json = false;
  bool no_measure = false;
  int threads = 0;
};

struct Chosen {
  const kernels::KernelTable* table = nullptr;
  std::string why;
};

Chosen chosen_kernels() {
  const char* forced = std::getenv("KVASIR_ISA");
  const char* why = "";
  const auto* table = kernels::choose_kernels(forced, &why);
  const bool is_forced = forced != nullptr && *forced != '\0';
  return {table, is_forced ? (table != nullptr ? "forced by KVASIR_ISA" : why) : why};
}

Json choices_json(const kernels::KernelTable& chosen) {
  int count = 0;
  const auto* choices = kernels::kernel_choices(&count);
  Json all = Json::array();
  for (int i = 0; i < count; ++i) {
    all.push_back({{"name", choices[i].name},
                   {"needs", choices[i].needs},
                   {"available", choices[i].cpu_has_it},
                   {"chosen", choices[i].table == &chosen}});
  }
  return all;
}

int run(const Options& options) {
  const Chosen chosen = chosen_kernels();
  if (chosen.table == nullptr)
    return fail({ErrorCode::unsupported, fmt::format("KVASIR_ISA is '{}': {}; available: {}",
                                                     std::getenv("KVASIR_ISA"), chosen.why,
                                                     available_kernels())});
  const auto advice = advise_threads();
  const int count = options.threads > 0 ? options.threads : advice.count;
  Json json = {{"version", KVASIR_VERSION},
               {"cpu", cpu_name()},
               {"isa", chosen.table->name},
               {"isa_reason", chosen.why},
               {"kernels", choices_json(*chosen.table)},
               {"threads", count},
               {"threads_reason", options.threads > 0 ? "asked for with --threads" : advice.reason},
               {"affinity_cpus", advice.affinity},
               {"physical_cores", advice.physical_cores},
               {"cgroup_quota_cpus", advice.cgroup_quota},
               {"thread_backend", Threads::backend()},
               {"available_memory_bytes", available_memory_bytes()}};
  if (!options.no_measure) {
    auto threads = Threads::create(count);
    auto bandwidth = measure_memory_bandwidth(*threads);
    if (!bandwidth) return fail(bandwidth.error());
    json["read_gb_per_s"] = *bandwidth / 1e9;
    json["peak_gmac_per_s"] = measure_multiply_add_peak(*chosen.table, *threads) / 1e9;
  }
  if (options.json) {
    print(to_text(json, 2) + "\n");
    return finish_output();
  }
  print(fmt::format("kvasir {}\nCPU       {}\nkernels   {} ({})\n", KVASIR_VERSION, cpu_name(),
                    chosen.table->name, chosen.why));
  for (const auto& choice : json["kernels"]) {
    print(fmt::format("            {:<12} {:<14} needs {}\n", choice["name"].get<std::string>(),
                      choice["available"].get<bool>() ? "available" : "not available",
                      choice["needs"].get<std::string>()));
  }
  print(fmt::format("threads   {} ({}; backend {})\n", count,
                    json["threads_reason"].get<std::string>(), Threads::backend()));
  print(fmt::format("memory    {:.1f} GB available\n",
                    static_cast<double>(available_memory_bytes()) / 1e9));
  if (!options.no_measure) {
    print(fmt::format("measured  reads {:.1f} GB/s, {:.0f} G multiply-adds/s of 8-bit integers\n",
                      json["read_gb_per_s"].get<double>(), json["peak_gmac_per_s"].get<double>()));
  }
  return finish_output();
}

}  // namespace

void add_system(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("system", "CPU, kernels, threads and measured limits of this machine");
  auto options = std::make_shared<Options>();
  declare_json(*command, options->json);
  command->add_flag("--no-measure", options->no_measure, "skip measuring bandwidth and peak");
  command->add_option("--threads", options->threads, "threads to measure with")
      ->check(CLI::Range(1, 1024))->type_name("N");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace kvasir::cli
