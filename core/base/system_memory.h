// Memory this process may still use, and the most it has used.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvasir {

/// Bytes: the smaller of what the system says is available (/proc/meminfo) and what the control
/// group still allows. 0 when neither is known.
uint64_t available_memory_bytes();

/// Highest resident size of this process so far, in bytes (getrusage); 0 when unknown.
uint64_t peak_resident_bytes();

}  // namespace kvasir
