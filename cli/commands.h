// The commands; each file in cli/commands declares one and runs it.
#pragma once

#include <CLI/CLI.hpp>

namespace kvasir::cli {

// Each adds a subcommand; when it was chosen, its callback puts the exit code into `exit_code`.
void add_chat(CLI::App& app, int& exit_code);
void add_generate(CLI::App& app, int& exit_code);
void add_tokenize(CLI::App& app, int& exit_code);
void add_logits(CLI::App& app, int& exit_code);
void add_inspect(CLI::App& app, int& exit_code);
void add_system(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_list(CLI::App& app, int& exit_code);

}  // namespace kvasir::cli
