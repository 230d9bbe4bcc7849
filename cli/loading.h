// Loading a model for a command: progress on a terminal, Ctrl-C, warnings.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "cli/options.h"
#include "core/engine/session.h"
#include "models/load.h"

namespace kvasir::cli {

/// A loaded model with an engine and the time it took.
struct Ready {
  std::unique_ptr<LoadedModel> loaded;
  std::shared_ptr<Engine> engine;
  std::chrono::steady_clock::time_point start;  ///< when loading began
  double load_s = 0;
};

/// Resolves the name, loads, makes an engine. Warns when --ctx exceeds the trained length.
Result<Ready> load_for(const std::string& model, EngineOptions options);

}  // namespace kvasir::cli
