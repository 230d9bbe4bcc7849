// JSON in and out.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "kvasir/result.h"

namespace kvasir::cli {

using Json = nlohmann::ordered_json;

/// JSON text, always valid UTF-8: bytes that are not (only file contents could bring them) become
/// U+FFFD. Control characters are written as escapes, so that a terminal obeys none of them.
std::string to_text(const Json& json, int indent = -1);

/// A value for an error message: at most 40 bytes, lists and objects only by their kind.
std::string brief(const Json& json);

/// The contents of a file ("-": standard input). Errors name the file, line and column.
Result<Json> read_json(const std::string& path);

}  // namespace kvasir::cli
