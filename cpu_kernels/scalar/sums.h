// Sums across an array: 16 lanes, then a fixed tree.
#pragma once

#include "cpu_kernels/kernels.h"

namespace kvasir::kernels::scalar {

/// Lanes at distance 8 are added, then 4, 2, 1. `lanes` is overwritten.
inline float sum_lanes(float (&lanes)[kLanes]) {
  for (int64_t distance = kLanes / 2; distance > 0; distance /= 2) {
    for (int64_t i = 0; i < distance; ++i) lanes[i] = lanes[i] + lanes[i + distance];
  }
  return lanes[0];
}

}  // namespace kvasir::kernels::scalar
