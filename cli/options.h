// Options that several commands share: each is declared once, with its default and range.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "core/engine/generate.h"

namespace kvasir::cli {

/// Options that shape the computation.
struct ComputeOptions {
  int threads = 0;
  int64_t prefill_chunk = 512;
  int64_t context_tokens = 0;
  std::string kv_type = "auto";
  std::string math = "reproducible";

  void declare(CLI::App& command);
  EngineOptions engine() const;
};

/// Options of the sampler. A command gives its own defaults before it declares them.
struct SamplingOptions {
  SamplingParameters parameters;
  void declare(CLI::App& command);
};

/// What to answer: the sources of a prompt.
struct PromptOptions {
  std::optional<std::string> prompt;
  std::string prompt_file;
  std::string system;         ///< TEXT or @FILE
  std::string messages_file;
  bool raw = false;
  void declare(CLI::App& command);
};

/// The model argument, a path or the name of a model in the cache folder.
void declare_model(CLI::App& command, std::string& model, bool required = true);

/// --json
void declare_json(CLI::App& command, bool& json);

/// A whole file, or standard input for "-".
Result<std::string> read_text(const std::string& path);

/// TEXT itself, or the contents of FILE for "@FILE".
Result<std::string> text_or_file(const std::string& text);

}  // namespace kvasir::cli
