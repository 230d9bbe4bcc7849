// Figures of a run, as JSON and as a line for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/engine/engine.h"
#include "core/engine/generate.h"
#include "core/engine/session.h"

namespace kvasir::cli {

using Json = nlohmann::ordered_json;

/// JSON text; invalid UTF-8 (which only file contents could bring) becomes U+FFFD.
std::string to_text(const Json& json, int indent = -1);

/// Tokens per second; 0 when nothing was done.
double tokens_per_s(const EvaluationStatistics& statistics);
double gb_per_s(const ForwardStatistics& statistics);

/// ISA, threads, math, KV type.
Json describe_engine(const Engine& engine);
/// Kernels called, with counts.
Json describe_kernels(const ForwardStatistics& statistics);
/// {"f16": bytes in use}
Json describe_kv(const Engine& engine);

std::string hash_text(uint64_t hash);

}  // namespace kvasir::cli
