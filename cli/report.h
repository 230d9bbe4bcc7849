// Figures of a run, as JSON and as a line for people.
#pragma once

#include <string>
#include <string_view>

#include "cli/json.h"
#include "core/engine/engine.h"
#include "core/engine/generate.h"
#include "core/engine/session.h"

namespace kvasir::cli {

/// Tokens per second; 0 when nothing was done.
double tokens_per_s(const EvaluationStatistics& statistics);
double gb_per_s(const ForwardStatistics& statistics);

/// "reproducible" or "fast".
const char* math_name(const Engine& engine);

/// ISA, threads, math, KV type.
Json describe_engine(const Engine& engine);
/// Kernels called, with counts.
Json describe_kernels(const ForwardStatistics& statistics);
/// {"f16": bytes in use}
Json describe_kv(const Engine& engine);

std::string hash_text(uint64_t hash);

}  // namespace kvasir::cli
