// Building error messages with fmt.
#pragma once

#include <fmt/format.h>

#include "kvasir/result.h"

namespace kvasir {

/// `return make_error(ErrorCode::io, "cannot open {}: {}", path, reason);`
template <class... Args>
Error make_error(ErrorCode code, fmt::format_string<Args...> text, Args&&... args) {
  return Error{code, fmt::format(text, std::forward<Args>(args)...)};
}

}  // namespace kvasir
