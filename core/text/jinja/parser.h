// Tokens to a parsed template.
#pragma once

#include <memory>
#include <string_view>

#include "core/text/jinja/ast.h"
#include "kvasir/result.h"

namespace kvasir::jinja {

/// Errors begin with the line: syntax, unknown tags, filters and tests that would run, nesting
/// deeper than kMostNesting. As in jinja2, an unknown filter or test inside an `if` is an error
/// only when it runs.
Result<std::shared_ptr<const Ast>> parse_template(std::string_view source);

}  // namespace kvasir::jinja
