// JSON to template values.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "core/text/jinja/value.h"

namespace kvasir::jinja {

/// Every string is content. `name` is for errors: text that is not UTF-8, an integer past 64 bits,
/// nesting deeper than kMostValueDepth.
Value value_from_json(Context& context, const nlohmann::ordered_json& json, std::string_view name);

/// A list of messages as Hugging Face hands them to templates: null members dropped, reasoning
/// under all its names. Roles that templates know are markup.
Value messages_from_json(Context& context, const nlohmann::ordered_json& messages);

}  // namespace kvasir::jinja
