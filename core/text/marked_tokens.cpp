#include "core/text/marked_tokens.h"

#include <algorithm>
#include <numeric>

namespace kvasir {
namespace {

uint64_t edge(uint32_t node, char byte) {
  return (uint64_t{node} << 8) | static_cast<unsigned char>(byte);
}

}  // namespace

MarkedTokens::MarkedTokens(const std::vector<Spelling>& spellings) : nodes_(1) {
  for (const auto& spelling : spellings) add(spelling);
  link_failures();
}

uint32_t MarkedTokens::child(uint32_t node, char byte) const {
  if (node == 0) return root_children_[static_cast<unsigned char>(byte)];
  const auto found = children_.find(edge(node, byte));
  return found == children_.end() ? 0 : found->second;
}

/// The node of the longest end of (`node` + `byte`) that is in the trie.
uint32_t MarkedTokens::step(uint32_t node, char byte) const {
  for (;;) {
    const uint32_t next = child(node, byte);
    if (next != 0 || node == 0) return next;
    node = nodes_[node].failure;
  }
}

void MarkedTokens::add(const Spelling& spelling) {
  uint32_t node = 0;
  for (size_t i = spelling.text.size(); i-- > 0;) {
    const char byte = spelling.text[i];
    uint32_t next = child(node, byte);
    if (next == 0) {
      next = static_cast<uint32_t>(nodes_.size());
      if (node == 0) {
        root_children_[static_cast<unsigned char>(byte)] = next;
      } else {
        children_.emplace(edge(node, byte), next);
      }
      Node fresh;
      fresh.parent = node;
      fresh.depth = nodes_[node].depth + 1;
      fresh.byte = byte;
      nodes_.push_back(fresh);
    }
    node = next;
  }
  if (node != 0 && nodes_[node].length == 0) {
    nodes_[node].length = nodes_[node].depth;
    nodes_[node].id = spelling.id;
  }
}

void MarkedTokens::link_failures() {
  std::vector<uint32_t> by_depth(nodes_.size());
  std::iota(by_depth.begin(), by_depth.end(), 0U);
  std::stable_sort(by_depth.begin(), by_depth.end(),
                   [&](uint32_t a, uint32_t b) { return nodes_[a].depth < nodes_[b].depth; });
  for (const uint32_t index : by_depth) {
    Node& node = nodes_[index];
    if (node.depth < 2) continue;  // the root, or one byte: fails to the root
    node.failure = step(nodes_[node.parent].failure, node.byte);
    // A spelling of this node itself is longer than any of its failure's.
    if (node.length == 0) {
      node.length = nodes_[node.failure].length;
      node.id = nodes_[node.failure].id;
    }
  }
}

std::vector<MarkedTokens::Match> MarkedTokens::find_all(std::string_view text) const {
  std::vector<Match> matches;
  if (empty()) return matches;
  uint32_t node = 0;
  for (size_t i = text.size(); i-- > 0;) {
    node = step(node, text[i]);
    if (nodes_[node].length > 0)
      matches.push_back({static_cast<uint32_t>(i), nodes_[node].length, nodes_[node].id});
  }
  // Descending so far, one for each place where any begins: keep those that begin behind the last.
  std::reverse(matches.begin(), matches.end());
  uint64_t end = 0;
  std::erase_if(matches, [&](const Match& match) {
    if (match.offset < end) return true;
    end = uint64_t{match.offset} + match.length;
    return false;
  });
  return matches;
}

}  // namespace kvasir
