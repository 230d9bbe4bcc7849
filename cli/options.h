// Options that several commands share: each is declared once, with its default, range and help.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "core/engine/generate.h"

namespace kvasir::cli {

/// Name, allowed values and meaning of a number, as help shows them.
template <class T>
struct NumberOption {
  const char* name;  ///< "--top-k"
  T least;
  T most;
  const char* help;
  bool has_default = true;  ///< false: help does not show the value it has before parsing
};

/// Declares a number. Text that is not a number, NaN, and a number outside the range are usage
/// errors that name the option and the range. T: int32_t, int64_t, uint64_t or float.
template <class T>
CLI::Option* add_number(CLI::App& command, T& value, const NumberOption<T>& option);

/// Declares a list of numbers, "1,2,4"; each is checked like a number. Not empty. The default is
/// shown unless the list is empty before parsing.
template <class T>
CLI::Option* add_numbers(CLI::App& command, std::vector<T>& values, const NumberOption<T>& option);

/// Declares a text; an empty one is a text, too.
CLI::Option* add_text(CLI::App& command, const char* name, std::optional<std::string>& value,
                      const char* type, const char* help);

/// Options that shape the computation.
struct ComputeOptions {
  int32_t threads = 0;
  int64_t prefill_chunk = 512;
  int64_t context_tokens = 0;
  std::string kv_type = "auto";
  std::string math = "reproducible";

  void declare(CLI::App& command);
  /// All but --threads and --ctx, for commands that have their own of these.
  void declare_chunk_and_types(CLI::App& command);
  EngineOptions engine() const;
};

/// Those of them that a memory plan depends on.
void declare_threads(CLI::App& command, int32_t& threads);

/// Options of the sampler. A command gives its own defaults before it declares them.
struct SamplingOptions {
  SamplingParameters parameters;
  bool seed_given = false;
  enum class Seed { fixed, drawn };  ///< what is used when --seed is not given
  void declare(CLI::App& command, Seed seed);
};

/// When an answer ends.
struct LengthOptions {
  int64_t max_tokens = 0;
  std::vector<std::string> stop_strings;
  void declare(CLI::App& command);
};

/// Options for `generate` from all of them and the model's own end tokens.
GenerateOptions generate_options(const SamplingOptions& sampling, const LengthOptions& length,
                                 const Tokenizer& tokenizer);

/// --system
CLI::Option* declare_system(CLI::App& command, std::string& system);

/// The model argument, a path or the name of a model in the cache folder.
CLI::Option* declare_model(CLI::App& command, std::string& model);

/// --json
CLI::Option* declare_json(CLI::App& command, bool& json);

/// A whole file, or standard input for "-".
Result<std::string> read_text(const std::string& path);

/// TEXT itself, or the contents of FILE for "@FILE".
Result<std::string> text_or_file(const std::string& text);

}  // namespace kvasir::cli
