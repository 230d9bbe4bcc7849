// IEEE 754 half precision in plain integer arithmetic: the definition.
#pragma once

#include <cstdint>

namespace kvasir::kernels::scalar {

/// Exact.
float half_to_float(uint16_t half);
/// Round to nearest, ties to even; too large becomes infinity; NaN stays NaN (quiet).
uint16_t float_to_half(float value);

}  // namespace kvasir::kernels::scalar
