// Finding added tokens in text.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kvasir {

/// A set of spellings; at each place the longest one is found. Time is linear in the text times the
/// longest spelling, memory in the spellings.
class MarkedTokens {
 public:
  void add(std::string_view spelling, int32_t id);
  bool empty() const { return next_.empty(); }

  struct Match {
    size_t offset = 0;
    size_t length = 0;  ///< 0: nothing found
    int32_t id = -1;
  };
  /// The first (leftmost, then longest) spelling at or after `from`.
  Match find(std::string_view text, size_t from) const;

 private:
  std::unordered_map<uint64_t, uint32_t> next_;  // (node << 8 | byte) -> node; a trie
  std::vector<int32_t> ids_ = {-1};              // by node; -1: no spelling ends here
};

}  // namespace kvasir
