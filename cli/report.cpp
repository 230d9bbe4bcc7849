#include "cli/report.h"

#include <fmt/format.h>

namespace kvasir::cli {

double tokens_per_s(const EvaluationStatistics& statistics) {
  const double seconds = std::chrono::duration<double>(statistics.forward.time).count();
  return seconds > 0 ? static_cast<double>(statistics.tokens_evaluated) / seconds : 0;
}

double gb_per_s(const ForwardStatistics& statistics) {
  const double seconds = std::chrono::duration<double>(statistics.time).count();
  return seconds > 0 ? static_cast<double>(statistics.bytes()) / seconds / 1e9 : 0;
}

const char* math_name(const Engine& engine) {
  return engine.options().math == MathMode::fast ? "fast" : "reproducible";
}

Json describe_engine(const Engine& engine) {
  Json json = {{"isa", engine.model().kernels_name()},
               {"threads", engine.threads()},
               {"thread_backend", Threads::backend()},
               {"math", math_name(engine)},
               {"kv_type", kv::kv_type_name(*engine.options().kv_type)},
               {"ctx", engine.options().context_tokens},
               {"prefill_chunk", engine.options().prefill_chunk}};
  // Empty where the model has no dense matrices, or this build no library.
  if (engine.options().math == MathMode::fast) json["math_choices"] = engine.fast_math_choices();
  return json;
}

Json describe_kernels(const ForwardStatistics& statistics) {
  Json kernels = Json::object();
  for (size_t i = 0; i < statistics.matmul_calls.size(); ++i) {
    if (statistics.matmul_calls[i] == 0) continue;
    const auto* format = kernels::format_name(static_cast<kernels::WeightFormat>(i));
    kernels[fmt::format("matmul_{}", format)] = statistics.matmul_calls[i];
  }
  if (statistics.library_matmul_calls > 0)
    kernels["of_these_by_library"] = statistics.library_matmul_calls;
  if (statistics.attention_calls > 0) kernels["attention"] = statistics.attention_calls;
  return kernels;
}

Json describe_kv(const Engine& engine) {
  size_t bytes = 0;
  for (const auto& pool : engine.pools().pools) {
    bytes += static_cast<size_t>(pool->statistics().blocks_in_use) * pool->layout().block_bytes();
  }
  return {{std::string(kv::kv_type_name(*engine.options().kv_type)), bytes}};
}

std::string hash_text(uint64_t hash) {
  return fmt::format("{:016x}", hash);
}

}  // namespace kvasir::cli
