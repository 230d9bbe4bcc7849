// What one forward step works on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/kv/sequence.h"
#include "core/text/tokenizer.h"

namespace kvasir {

/// Consecutive rows of a batch that belong to one sequence: its tokens at positions
/// [first_position, first_position + n_rows). Room for them is reserved already.
struct BatchSegment {
  kv::Sequence* sequence = nullptr;
  int64_t first_row = 0;
  int64_t n_rows = 0;
  int64_t first_position = 0;
};

/// A ragged batch: no padding, every row carries its sequence and position by its segment.
struct Batch {
  std::span<const TokenId> tokens;        ///< [n_rows]
  std::span<const BatchSegment> segments; ///< cover the rows in order
  std::span<const int64_t> logit_rows;    ///< rows whose logits are wanted, ascending
};

}  // namespace kvasir
