// The merges of byte pair encoding (Sennrich et al. 2016) and their application.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/text/tokenizer.h"

namespace kvasir {

/// Which two neighbours may become one token, and how early: lower ranks first. Immutable after
/// assign(); every const call is thread-safe.
///
/// A sorted table with one range for each left token: 16 bytes a merge, no hash that a hostile file
/// could make collide. SmolLM2's 48,900 merges: 0.78 MB + 0.2 MB of ranges.
class BpeMerges {
 public:
  struct Merge {
    TokenId left = -1;
    TokenId right = -1;
    TokenId result = -1;  ///< its bytes are those of left and right joined
    int32_t rank = 0;
  };
  /// Ids are in [0, n_vocab). Gives the rank of a merge whose pair has come before, if there is
  /// one; the table is then of no use.
  std::optional<int32_t> assign(std::vector<Merge> merges, size_t n_vocab);

  /// Memory that one call of apply() needs and the next can use again.
  struct Workspace {
    struct Symbol {
      TokenId id = -1;
      int32_t previous = -1;
      int32_t next = -1;
    };
    struct Candidate {
      int32_t rank = 0;
      int32_t left = 0;    // index of the left symbol
      uint32_t merge = 0;  // index of the merge
    };
    std::vector<Symbol> symbols;        // a doubly linked list: 12 bytes a symbol
    std::vector<Candidate> candidates;  // a heap, at most two a symbol: 24 bytes
  };

  /// Merges `symbols` (the tokens of single bytes) as far as it goes, lowest rank first and
  /// leftmost among equals, and appends what is left to `ids`. O(n log n) in time, no recursion.
  /// At most 2^31 - 1 symbols.
  void apply(const std::vector<TokenId>& symbols, Workspace& workspace,
             std::vector<TokenId>& ids) const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t find(TokenId left, TokenId right) const;  // index of the merge, or kNone

  std::vector<Merge> merges_;     // sorted by left, then right
  std::vector<uint32_t> starts_;  // [n_vocab + 1]: where the merges of each left token begin
};

}  // namespace kvasir
