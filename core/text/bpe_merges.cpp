#include "core/text/bpe_merges.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <tuple>
#include <utility>

namespace kvasir {
namespace {

using Candidate = BpeMerges::Workspace::Candidate;

/// Order of a heap whose top is the merge to do next.
bool is_later(const Candidate& a, const Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
}

}  // namespace

std::optional<int32_t> BpeMerges::assign(std::vector<Merge> merges, size_t n_vocab) {
  merges_ = std::move(merges);
  std::ranges::sort(merges_, {},
                    [](const Merge& m) { return std::tuple(m.left, m.right, m.rank); });
  const auto repeated = std::ranges::adjacent_find(
      merges_, {}, [](const Merge& m) { return std::pair(m.left, m.right); });
  if (repeated != merges_.end()) return std::next(repeated)->rank;
  starts_.assign(n_vocab + 1, 0);
  for (const auto& merge : merges_) ++starts_[static_cast<size_t>(merge.left) + 1];
  std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
  return std::nullopt;
}

uint32_t BpeMerges::find(TokenId left, TokenId right) const {
  const auto at = merges_.begin() + starts_[static_cast<size_t>(left)];
  const auto end = merges_.begin() + starts_[static_cast<size_t>(left) + 1];
  const auto found = std::ranges::lower_bound(at, end, right, {}, &Merge::right);
  if (found == end || found->right != right) return kNone;
  return static_cast<uint32_t>(found - merges_.begin());
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
    const uint32_t merge = find(a.id, list[static_cast<size_t>(a.next)].id);
    if (merge != kNone) heap.push_back({merges_[merge].rank, left, merge});
    return merge != kNone;
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
    const Merge& merge = merges_[best.merge];
    // Either symbol may have been merged since; tokens only grow, so ids tell.
    if (left.id != merge.left || left.next < 0) continue;
    auto& right = list[static_cast<size_t>(left.next)];
    if (right.id != merge.right) continue;
    left.id = merge.result;
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
