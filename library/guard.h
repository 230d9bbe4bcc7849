// The border of the library: what is thrown inside becomes an Error outside.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "kvasir/result.h"

namespace kvasir {

/// Describing a fault may need memory, too; then a text that needs none must do.
inline Error described(const std::exception& fault) noexcept {
  try {
    return {ErrorCode::internal, fault.what()};
  } catch (...) {
    return {ErrorCode::internal, "internal fault"};
  }
}

/// Calls `work`, which returns a Result or a Status.
template <class Work>
auto guarded(const Work& work) noexcept -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "out of memory"};
  } catch (const std::exception& fault) {
    return described(fault);
  } catch (...) {
    return Error{ErrorCode::internal, "internal fault"};
  }
}

}  // namespace kvasir
