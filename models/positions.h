// Rotary positions: which angle turns which pair at which position.
#pragma once

#include <cstdint>
#include <vector>

#include "models/config.h"

namespace kvasir {

/// Angles of RoPE (Su et al. 2021) for the layers of one kind. Immutable. Angles are computed in double, so
/// positions may grow far past 2^24 without losing precision.
class RotaryPositions {
 public:
  RotaryPositions() = default;
  /// `factors` [rotary_dim / 2] divide the angles; empty: none.
  RotaryPositions(const AttentionKind& kind, int64_t rotary_dim, const std::vector<float>& factors);

  int64_t n_pairs() const { return static_cast<int64_t>(frequencies_.size()); }

  /// Writes cos and sin of every pair's angle at `position`; each [n_pairs].
  void row(int64_t position, float* cos, float* sin) const;

 private:
  std::vector<double> frequencies_;  // radians per position
};

}  // namespace kvasir
