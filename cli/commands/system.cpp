// kvasir system: what this machine is, and what was chosen for it.
#include <fmt/format.h>
#include <kvasir/version.h>

#include <memory>

#include "cli/commands.h"
#include "cli/machine.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "core/base/system_memory.h"
#include "core/engine/kernel_choice.h"
#include "core/engine/machine_limits.h"
#include "core/threads/threads.h"

namespace kvasir::cli {
namespace {

struct Options {
  bool json = false;
  bool no_measure = false;
  int32_t threads = 0;
};

Json sets_json(const KernelChoice& chosen) {
  Json all = Json::array();
  for (const auto& set : kernel_sets()) {
    all.push_back({{"name", set.name},
                   {"needs", set.needs},
                   {"available", set.available},
                   {"chosen", set.name == chosen.table->name}});
  }
  return all;
}

std::string joined(const Json& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : " ") + name.get<std::string>();
  return text;
}

void print_text(const Json& json) {
  const auto text = [&](const char* key) { return json[key].get<std::string>(); };
  print(fmt::format("kvasir    {}\nCPU       {}\n          {}\nkernels   {} ({})\n", kVersion,
                    printable(text("cpu")), joined(json["cpu_features"]), text("isa"),
                    text("isa_reason")));
  for (const auto& choice : json["kernels"]) {
    print(fmt::format("            {:<12} {:<14} needs {}\n", choice["name"].get<std::string>(),
                      choice["available"].get<bool>() ? "available" : "not available",
                      choice["needs"].get<std::string>()));
  }
  print(fmt::format("threads   {} ({}; backend {})\n", json["threads"].get<int>(),
                    text("threads_reason"), text("thread_backend")));
  print(fmt::format("memory    {:.1f} GB available\n",
                    json["available_memory_bytes"].get<double>() / 1e9));
  if (json.contains("read_gb_per_s")) {
    print(fmt::format("measured  reads {:.1f} GB/s, {:.0f} G multiply-adds/s of 8-bit integers\n",
                      json["read_gb_per_s"].get<double>(), json["peak_gmac_per_s"].get<double>()));
  }
  print("libraries");
  for (const auto& [name, version] : json["libraries"].items())
    print(fmt::format(" {} {}", name, version.get<std::string>()));
  print("\n");
}

int run(const Options& options) {
  auto choice = choose_kernels();
  if (!choice) return fail(choice.error());
  const KernelChoice& chosen = *choice;
  const auto advice = advise_threads();
  const int count = options.threads > 0 ? options.threads : advice.count;
  Json json = {{"version", kVersion},
               {"cpu", cpu_name()},
               {"cpu_features", cpu_features()},
               {"isa", chosen.table->name},
               {"isa_reason", chosen.reason},
               {"kernels", sets_json(chosen)},
               {"threads", count},
               {"threads_reason", options.threads > 0 ? "asked for with --threads" : advice.reason},
               {"affinity_cpus", advice.affinity},
               {"physical_cores", advice.physical_cores},
               {"cgroup_quota_cpus", advice.cgroup_quota},
               {"thread_backend", Threads::backend()},
               {"available_memory_bytes", available_memory_bytes()},
               {"libraries", Json::object()}};
  for (const auto& [name, version] : library_versions()) json["libraries"][name] = version;
  if (!options.no_measure) {
    auto threads = Threads::create(count);
    auto bandwidth = measure_memory_bandwidth(*threads);
    if (!bandwidth) return fail(bandwidth.error());
    json["read_gb_per_s"] = *bandwidth / 1e9;
    json["peak_gmac_per_s"] = measure_multiply_add_peak(*chosen.table, *threads) / 1e9;
  }
  if (options.json) {
    print(to_text(json, 2) + "\n");
  } else {
    print_text(json);
  }
  return finish_output();
}

}  // namespace

void add_system(CLI::App& app, Run& run_later) {
  auto* command =
      app.add_subcommand("system", "CPU, kernels, threads and measured limits of this machine");
  auto options = std::make_shared<Options>();
  declare_json(*command, options->json);
  command->add_flag("--no-measure", options->no_measure, "skip measuring bandwidth and peak");
  declare_threads(*command, options->threads);
  command->callback([options, &run_later] { run_later = [options] { return run(*options); }; });
}

}  // namespace kvasir::cli
