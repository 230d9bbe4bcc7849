// Finding added tokens in text.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kvasir {

/// A set of spellings, found leftmost first, then longest (what "longest match" means for added
/// tokens everywhere). Immutable after construction, thread-safe.
///
/// The automaton of Aho and Corasick (1975) over the reversed spellings reads the text backwards:
/// at each byte it knows the longest spelling that begins there. So the time is linear in the text
/// whatever the spellings; trying each place forwards costs text x longest spelling, which a
/// hostile file (a spelling of 1 MiB of one letter) makes quadratic.
class MarkedTokens {
 public:
  struct Spelling {
    std::string_view text;  ///< any bytes; empty ones are never found
    int32_t id = -1;        ///< of equal spellings the first one counts
  };
  MarkedTokens() = default;
  explicit MarkedTokens(const std::vector<Spelling>& spellings);

  bool empty() const { return nodes_.size() <= 1; }

  struct Match {
    uint32_t offset = 0;  ///< bytes
    uint32_t length = 0;  ///< bytes, > 0
    int32_t id = -1;
  };
  /// Every match in ascending order; matches do not overlap. `text` is below 4 GiB.
  std::vector<Match> find_all(std::string_view text) const;

 private:
  struct Node {
    uint32_t parent = 0;
    uint32_t failure = 0;  // node of the longest proper end of this one that is in the trie
    uint32_t depth = 0;    // bytes
    uint32_t length = 0;   // of the longest spelling that begins here; 0: none
    int32_t id = -1;       // of that spelling
    char byte = 0;         // on the edge from the parent
  };
  void add(const Spelling& spelling);
  void link_failures();
  uint32_t child(uint32_t node, char byte) const;  // 0: none (no edge leads to the root)
  uint32_t step(uint32_t node, char byte) const;

  std::unordered_map<uint64_t, uint32_t> children_;  // (node << 8 | byte) -> node, not the root's
  std::array<uint32_t, 256> root_children_{};  // nearly every byte of a text is looked up here
  std::vector<Node> nodes_;                    // [0] is the root
};

}  // namespace kvasir
