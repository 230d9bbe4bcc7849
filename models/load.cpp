#include "models/load.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/system_memory.h"
#include "core/engine/kernel_choice.h"
#include "models/decoder.h"
#include "models/families/families.h"

namespace kvasir {
namespace {

Result<const Family*> find_family(const std::string& architecture) {
  std::string known;
  for (const auto& family : all_families()) {
    if (architecture == family.architecture) return &family;
    known += known.empty() ? "" : ", ";
    known += family.architecture;
  }
  return make_error(ErrorCode::unsupported,
                    "architecture '{}' (key 'general.architecture') is not supported; known: {}",
                    architecture, known);
}

std::string megabytes(uint64_t bytes) {
  return fmt::format("{:.0f} MB", static_cast<double>(bytes) / 1e6);
}

/// The largest context of whole blocks, below `too_large`, whose plan fits; 0: none. (Windows make the
/// KV grow by steps that differ, so that a division would not tell.)
int64_t largest_context(const Model& model, EngineOptions options, int64_t too_large,
                        uint64_t available) {
  int64_t fits = 0;
  int64_t above = too_large / kv::kBlockPositions + 1;  // in blocks
  while (fits + 1 < above) {
    const int64_t middle = fits + (above - fits) / 2;
    options.context_tokens = middle * kv::kBlockPositions;
    (Engine::plan(model, options).total_bytes() <= available ? fits : above) = middle;
  }
  return fits * kv::kBlockPositions;
}

/// Refuses a plan that does not fit, with the largest context that would.
Status check_memory(const Model& model, const EngineOptions& options) {
  const uint64_t available = available_memory_bytes();
  const MemoryPlan plan = Engine::plan(model, options);
  if (available == 0 || plan.total_bytes() <= available) return {};
  const auto needs = fmt::format(
      "the model needs {} ({} weights, {} KV at a context of {} tokens, {} scratch), but only {} "
      "of memory is available",
      megabytes(plan.total_bytes()), megabytes(plan.weight_bytes), megabytes(plan.kv_bytes),
      plan.context_tokens, megabytes(plan.scratch_bytes), megabytes(available));
  const int64_t fits = largest_context(model, options, plan.context_tokens, available);
  if (fits == 0)
    return make_error(ErrorCode::out_of_memory, "{}; the weights alone do not fit", needs);
  const char* smaller = plan.kv_type == kv::KvType::f32 ? ", or --kv-type f16 halves the KV" : "";
  return make_error(ErrorCode::out_of_memory, "{}; --ctx {} fits{}", needs, fits, smaller);
}

/// A template that cannot be used is no reason not to load: raw prompts still work.
void read_chat_template(const gguf::Header& header, LoadedModel& loaded) {
  if (header.find("tokenizer.chat_template") == nullptr) {
    loaded.chat_template_error = "the model file has no chat template (key "
                                 "'tokenizer.chat_template')";
    return;
  }
  const auto source = header.get_string("tokenizer.chat_template");
  if (!source) {
    loaded.chat_template_error = source.error().message;
    return;
  }
  auto parsed = ChatTemplate::parse(*source);
  if (parsed) {
    loaded.chat_template = std::move(*parsed);
  } else {
    loaded.chat_template_error = "the model's chat template: " + parsed.error().message;
  }
}

}  // namespace

Result<std::unique_ptr<LoadedModel>> load_model(const std::string& path,
                                                const LoadOptions& options) {
  auto kernels = choose_kernels();
  if (!kernels) return std::move(kernels).error();
  auto opened = gguf::File::open(path);
  if (!opened) return std::move(opened).error();
  const gguf::File& file = **opened;
  const auto architecture = file.header.get_string("general.architecture");
  if (!architecture) return architecture.error();
  auto family = find_family(std::string(*architecture));
  if (!family) return std::move(family).error();
  // The vocabulary before the sizes: its faults are named even where a size is missing too.
  auto tokenizer = Tokenizer::from_gguf(file.header);
  if (!tokenizer) return std::move(tokenizer).error();
  auto config = (*family)->read_config(file.header);
  if (!config) return std::move(config).error();

  auto loaded = std::make_unique<LoadedModel>();
  loaded->path = path;
  loaded->architecture = std::string(*architecture);
  const auto name = file.header.string_or("general.name", "");
  loaded->name = name && !name->empty() ? std::string(*name) : path.substr(path.rfind('/') + 1);

  loaded->tokenizer = std::move(*tokenizer);

  auto decoder = std::make_shared<Decoder>(*config, *kernels->table);
  size_t arena_bytes = 0;
  auto jobs = plan_weights(file.header, decoder->config(), decoder->weights(), &arena_bytes);
  if (!jobs) return std::move(jobs).error();
  decoder->set_planned_weight_bytes(arena_bytes);
  if (loaded->tokenizer->n_vocab() > decoder->n_vocab()) {
    return make_error(ErrorCode::corrupt_file,
                      "key 'tokenizer.ggml.tokens' has {} tokens, but tensor 'token_embd.weight' "
                      "has only {} rows",
                      loaded->tokenizer->n_vocab(), decoder->n_vocab());
  }
  if (options.check_memory) {
    if (auto s = check_memory(*decoder, options.engine); !s) return std::move(s).error();
  }
  read_chat_template(file.header, *loaded);

  if (!options.header_only) {
    const int n_threads = options.threads > 0 ? options.threads : advise_threads().count;
    auto threads = Threads::create(n_threads);
    if (auto s = pack_weights(file, *jobs, arena_bytes, decoder->weights(), *threads,
                              options.progress, options.cancel);
        !s)
      return std::move(s).error();
    decoder->finish_loading();
  }
  loaded->model = std::move(decoder);
  return loaded;
}

}  // namespace kvasir
