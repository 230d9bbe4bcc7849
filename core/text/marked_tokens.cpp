#include "core/text/marked_tokens.h"

namespace kvasir {
namespace {

uint64_t edge(uint32_t node, char byte) {
  return (uint64_t{node} << 8) | static_cast<unsigned char>(byte);
}

}  // namespace

void MarkedTokens::add(std::string_view spelling, int32_t id) {
  if (spelling.empty()) return;
  uint32_t node = 0;
  for (const char byte : spelling) {
    const auto [at, is_new] = next_.try_emplace(edge(node, byte), static_cast<uint32_t>(ids_.size()));
    if (is_new) ids_.push_back(-1);
    node = at->second;
  }
  if (ids_[node] < 0) ids_[node] = id;  // the lowest id of equal spellings
}

MarkedTokens::Match MarkedTokens::find(std::string_view text, size_t from) const {
  for (size_t start = from; start < text.size(); ++start) {
    Match match;
    uint32_t node = 0;
    for (size_t at = start; at < text.size(); ++at) {
      const auto next = next_.find(edge(node, text[at]));
      if (next == next_.end()) break;
      node = next->second;
      if (ids_[node] >= 0) match = {start, at + 1 - start, ids_[node]};
    }
    if (match.length > 0) return match;
  }
  return {};
}

}  // namespace kvasir
