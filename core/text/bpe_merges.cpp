#include "core/text/bpe_merges.h"

#include <algorithm>

namespace kvasir {
namespace {

uint64_t pair_key(TokenId left, TokenId right) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
}

using Candidate = BpeMerges::Workspace::Candidate;

/// Order of a heap whose top is the merge to do next.
bool is_later(const Candidate& a, const Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
}

}  // namespace

bool BpeMerges::add(TokenId left, TokenId right, Merge merge) {
  return merges_.try_emplace(pair_key(left, right), merge).second;
}

const BpeMerges::Merge* BpeMerges::find(TokenId left, TokenId right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void BpeMerges::apply(const std::vector<TokenId>& symbols, Workspace& workspace,
                      std::vector<TokenId>& ids) const {
  auto& list = workspace.symbols;
  auto& heap = workspace.candidates;
  const auto n = static_cast<int32_t>(symbols.size());
  list.resize(symbols.size());
  heap.clear();
  for (int32_t i = 0; i < n; ++i) {
    list[static_cast<size_t>(i)] = {symbols[static_cast<size_t>(i)], i - 1, i + 1 < n ? i + 1 : -1};
  }
  const auto candidate_at = [&](int32_t left) {
    if (left < 0) return false;
    const auto& a = list[static_cast<size_t>(left)];
    if (a.next < 0) return false;
    const TokenId right_id = list[static_cast<size_t>(a.next)].id;
    const Merge* merge = find(a.id, right_id);
    if (merge != nullptr) heap.push_back({merge->rank, left, a.id, right_id});
    return merge != nullptr;
  };
  const auto consider = [&](int32_t left) {
    if (candidate_at(left)) std::push_heap(heap.begin(), heap.end(), is_later);
  };
  for (int32_t i = 0; i + 1 < n; ++i) candidate_at(i);
  std::make_heap(heap.begin(), heap.end(), is_later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), is_later);
    const Candidate best = heap.back();
    heap.pop_back();
    auto& left = list[static_cast<size_t>(best.left)];
    // Either symbol may have been merged since; tokens only grow, so ids tell.
    if (left.id != best.left_id || left.next < 0) continue;
    auto& right = list[static_cast<size_t>(left.next)];
    if (right.id != best.right_id) continue;
    left.id = find(best.left_id, best.right_id)->result;
    right.id = -1;
    left.next = right.next;
    if (left.next >= 0) list[static_cast<size_t>(left.next)].previous = best.left;
    consider(left.previous);
    consider(best.left);
  }
  for (int32_t i = n > 0 ? 0 : -1; i >= 0; i = list[static_cast<size_t>(i)].next)
    ids.push_back(list[static_cast<size_t>(i)].id);
}

}  // namespace kvasir
