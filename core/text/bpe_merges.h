// The merges of byte pair encoding (Sennrich et al. 2016) and their application.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/text/tokenizer.h"

namespace kvasir {

/// Which two neighbours may become one token, and how early: lower ranks first.
class BpeMerges {
 public:
  struct Merge {
    int32_t rank = 0;
    TokenId result = -1;
  };
  void reserve(size_t n_merges) { merges_.reserve(n_merges); }
  /// False when the pair is there already; then nothing changes.
  bool add(TokenId left, TokenId right, Merge merge);
  const Merge* find(TokenId left, TokenId right) const;

  /// Memory that one call of apply() needs and the next can use again.
  struct Workspace {
    struct Symbol {
      TokenId id = -1;
      int32_t previous = -1;
      int32_t next = -1;
    };
    struct Candidate {
      int32_t rank = 0;
      int32_t left = 0;  // index of the left symbol
      TokenId left_id = -1;
      TokenId right_id = -1;
    };
    std::vector<Symbol> symbols;        // a doubly linked list: 12 bytes a symbol
    std::vector<Candidate> candidates;  // a heap, at most two a symbol: 32 bytes
  };

  /// Merges `symbols` (the tokens of single bytes) as far as it goes, lowest rank first and
  /// leftmost among equals, and appends what is left to `ids`. O(n log n) in time, no recursion.
  /// At most 2^31 - 1 symbols. A merge's result must be longer than each of its parts.
  void apply(const std::vector<TokenId>& symbols, Workspace& workspace,
             std::vector<TokenId>& ids) const;

 private:
  /// Ids are small and dense: without mixing, neighbours would share buckets.
  struct Mix {
    size_t operator()(uint64_t key) const {
      key = (key ^ (key >> 32)) * 0x9E3779B97F4A7C15ULL;
      return static_cast<size_t>(key ^ (key >> 29));
    }
  };
  std::unordered_map<uint64_t, Merge, Mix> merges_;  // (left << 32 | right)
};

}  // namespace kvasir
