#include "models/positions.h"

#include "core/numerics/elementary.h"

namespace kvasir {

RotaryPositions::RotaryPositions(const AttentionKind& kind, int64_t rotary_dim,
                                 const std::vector<float>& factors) {
  const int64_t n_pairs = rotary_dim / 2;
  frequencies_.reserve(static_cast<size_t>(n_pairs));
  for (int64_t i = 0; i < n_pairs; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(rotary_dim);
    double frequency = numerics::pow(kind.rope_base, exponent) / kind.rope_linear_factor;
    if (!factors.empty()) frequency /= static_cast<double>(factors[static_cast<size_t>(i)]);
    frequencies_.push_back(frequency);
  }
}

void RotaryPositions::row(int64_t position, float* cos, float* sin) const {
  for (size_t i = 0; i < frequencies_.size(); ++i) {
    const auto angle = numerics::sincos(static_cast<double>(position) * frequencies_[i]);
    cos[i] = static_cast<float>(angle.cos);
    sin[i] = static_cast<float>(angle.sin);
  }
}

}  // namespace kvasir
