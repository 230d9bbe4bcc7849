// The commands; each file in cli/commands declares one and runs it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace kvasir::cli {

/// What the command line asked for; set while it is parsed, run afterwards. Gives the exit code.
using Run = std::function<int()>;

// Each adds a subcommand that sets `run` when it is chosen.
void add_chat(CLI::App& app, Run& run);
void add_generate(CLI::App& app, Run& run);
void add_tokenize(CLI::App& app, Run& run);
void add_logits(CLI::App& app, Run& run);
void add_inspect(CLI::App& app, Run& run);
void add_system(CLI::App& app, Run& run);
void add_bench(CLI::App& app, Run& run);
void add_perplexity(CLI::App& app, Run& run);
void add_list(CLI::App& app, Run& run);

}  // namespace kvasir::cli
