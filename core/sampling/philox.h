// Counter-based random numbers: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", 2011).
#pragma once

#include <array>
#include <cstdint>

namespace kvasir {

/// Four random words that depend on the counter and key alone.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// A number in [0, 1) with 53 random bits for draw `step` of sequence `sequence`.
double uniform_draw(uint64_t seed, uint64_t sequence, uint64_t step);

}  // namespace kvasir
