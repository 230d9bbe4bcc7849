// The folder of fetched models, and finding one by name.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/base/error.h"
#include "models/load.h"

namespace kvasir {
namespace {

namespace fs = std::filesystem;
constexpr const char* kSuffix = ".gguf";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string model_cache_folder() {
  if (auto own = environment("KVASIR_MODELS"); !own.empty()) return own;
  if (auto cache = environment("XDG_CACHE_HOME"); !cache.empty()) return cache + "/kvasir/models";
  return environment("HOME") + "/.cache/kvasir/models";
}

std::vector<CachedModel> list_cached_models() {
  std::vector<CachedModel> models;
  std::error_code error;
  for (fs::directory_iterator entry(model_cache_folder(), error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->path().extension() != kSuffix || !entry->is_regular_file(ignored)) continue;
    models.push_back({entry->path().stem().string(), entry->path().string(),
                      entry->file_size(ignored)});
  }
  std::sort(models.begin(), models.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return models;
}

Result<std::string> resolve_model(const std::string& path_or_name) {
  std::error_code error;
  if (path_or_name.empty())
    return make_error(ErrorCode::invalid_argument, "the model's path or name is empty");
  if (fs::exists(path_or_name, error)) return path_or_name;
  const bool is_path = path_or_name.find('/') != std::string::npos;
  if (!is_path) {
    for (const std::string suffix : {"", kSuffix}) {
      const std::string in_cache = model_cache_folder() + "/" + path_or_name + suffix;
      if (fs::is_regular_file(in_cache, error)) return in_cache;
    }
  }
  std::string there;
  for (const auto& model : list_cached_models()) {
    there += there.empty() ? "" : ", ";
    there += model.name;
  }
  return make_error(ErrorCode::not_found,
                    "no file '{}'{} (models there: {}; scripts/fetch-model brings them)",
                    path_or_name,
                    is_path ? "" : ", and no model of that name in " + model_cache_folder(),
                    there.empty() ? "none" : there);
}

}  // namespace kvasir
