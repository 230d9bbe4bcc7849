// From a model file to a model that answers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "core/files/gguf.h"
#include "core/text/chat_template.h"
#include "core/text/tokenizer.h"
#include "kvasir/cancel.h"
#include "kvasir/result.h"

namespace kvasir {

struct LoadOptions {
  int threads = 0;  ///< for packing; 0: advise_threads()
  std::function<void(int64_t done_bytes, int64_t total_bytes)> progress;
  const CancelToken* cancel = nullptr;
  EngineOptions engine;      ///< what the memory plan is made for
  bool check_memory = true;  ///< refuse, before packing, when the plan exceeds available memory
  bool header_only = false;  ///< everything but the weights: the model plans, but cannot forward
};

/// Everything a model file gives.
struct LoadedModel {
  std::string path;
  std::string name;                        ///< general.name, or the file's
  std::string architecture;
  std::shared_ptr<const Model> model;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ChatTemplate> chat_template;  ///< null when the file has none or it is unusable
  std::string chat_template_error;              ///< why it is null
};

/// Loads a GGUF file. Errors name the architecture, key or tensor at fault.
Result<std::unique_ptr<LoadedModel>> load_model(const std::string& path,
                                                const LoadOptions& options = {});

/// The folder models are fetched into: $KVASIR_MODELS, else $XDG_CACHE_HOME/kvasir/models, else
/// ~/.cache/kvasir/models.
std::string model_cache_folder();

/// A path as it is, or the name of a model in the cache folder (with or without ".gguf").
/// not_found lists the names that are there.
Result<std::string> resolve_model(const std::string& path_or_name);

struct CachedModel {
  std::string name;
  std::string path;
  uint64_t size_bytes = 0;
};
std::vector<CachedModel> list_cached_models();

}  // namespace kvasir
