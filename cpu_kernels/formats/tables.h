// All formats, by the files that define them.
#pragma once

#include "cpu_kernels/formats/rows.h"

namespace kvasir::kernels::formats {

// blocks32.cpp
extern const Format kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0, kIq4Nl, kMxfp4;
// k_quants.cpp
extern const Format kQ2K, kQ3K, kQ4K, kQ5K, kQ6K, kIq4Xs;
// codebooks.cpp
extern const Format kIq2Xxs, kIq2Xs, kIq2S, kIq3Xxs, kIq3S, kIq1S, kIq1M;
// ternary.cpp
extern const Format kTq1_0, kTq2_0;

}  // namespace kvasir::kernels::formats
