// Lists of values that 4-bit codes stand for. Plain arrays: instruction-set files include this too.
#pragma once

#include <cstdint>

namespace kvasir::kernels::formats {

/// IQ4_NL and IQ4_XS.
inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};

/// E2M1 of the OCP Microscaling specification, doubled.
inline constexpr int8_t kMxfp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace kvasir::kernels::formats
