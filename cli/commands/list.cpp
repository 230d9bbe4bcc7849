// kvasir list: models in the cache folder.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "models/load.h"

namespace kvasir::cli {
namespace {

int run(bool json) {
  const auto models = list_cached_models();
  if (json) {
    Json all = Json::array();
    for (const auto& m : models)
      all.push_back({{"name", m.name}, {"path", m.path}, {"bytes", m.size_bytes}});
    print(to_text(all, 2) + "\n");
    return finish_output();
  }
  if (models.empty())
    note(fmt::format("no models in {} (scripts/fetch-model brings them)", model_cache_folder()));
  for (const auto& m : models)
    print(fmt::format("{:<40} {:>8.1f} MB\n", printable(m.name),
                      static_cast<double>(m.size_bytes) / 1e6));
  return finish_output();
}

}  // namespace

void add_list(CLI::App& app, Run& run_later) {
  auto* command = app.add_subcommand("list", "models in the cache folder");
  auto json = std::make_shared<bool>(false);
  declare_json(*command, *json);
  command->callback([json, &run_later] { run_later = [json] { return run(*json); }; });
}

}  // namespace kvasir::cli
