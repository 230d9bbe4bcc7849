#include "cli/loading.h"

#include <fmt/format.h>

#include "cli/terminal.h"

namespace kvasir::cli {

Result<Ready> load_for(const std::string& model, EngineOptions options) {
  const auto start = std::chrono::steady_clock::now();
  auto path = resolve_model(model);
  if (!path) return std::move(path).error();
  const InterruptGuard guard;
  ProgressBar bar("loading");
  LoadOptions load;
  load.threads = options.threads;
  load.engine = options;
  load.cancel = &InterruptGuard::token();
  load.progress = [&](int64_t done, int64_t total) { bar.update(done, total); };
  auto loaded = load_model(*path, load);
  bar.erase();
  if (!loaded) return std::move(loaded).error();
  const int64_t trained = (*loaded)->model->trained_context_tokens();
  if (options.context_tokens > trained) {
    warn(
        fmt::format("--ctx {} is longer than the {} tokens the model was trained for; answers may "
                    "get worse past that",
                    options.context_tokens, trained));
  }
  auto engine = Engine::create((*loaded)->model, options);
  if (!engine) return std::move(engine).error();
  Ready ready;
  ready.loaded = std::move(*loaded);
  ready.engine = std::move(*engine);
  ready.start = start;
  ready.load_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return ready;
}

}  // namespace kvasir::cli
