#include "core/kv/sequence.h"

#include <algorithm>

#include "core/base/checked.h"
#include "core/base/error.h"

namespace kvasir::kv {

void BlockRing::push_back(Entry entry) {
  const auto held = static_cast<size_t>(end_ - first_);
  if (held == entries_.size()) {
    std::vector<Entry> larger(std::max<size_t>(8, entries_.size() * 2));
    for (int64_t logical = first_; logical < end_; ++logical) {
      larger[static_cast<size_t>(logical) % larger.size()] = at(logical);
    }
    entries_ = std::move(larger);
  }
  entries_[index(end_)] = entry;
  ++end_;
}

BlockRing::Entry BlockRing::pop_back() {
  --end_;
  return entries_[index(end_)];
}

BlockRing::Entry BlockRing::pop_front() {
  ++first_;
  return entries_[index(first_ - 1)];
}

Sequence::Sequence(Pools& pools)
    : pools_(pools), rings_(pools.kinds.size()), before_reserve_(pools.kinds.size()) {}

Sequence::~Sequence() {
  for (size_t kind = 0; kind < rings_.size(); ++kind) release_from(kind, rings_[kind].first());
}

void Sequence::release_from(size_t kind, int64_t first_logical) {
  auto& ring = rings_[kind];
  while (ring.end() > std::max(first_logical, ring.first())) {
    pools_.pools[kind]->release(ring.pop_back().block);
  }
}

Status Sequence::reserve(int64_t end_position) {
  for (size_t kind = 0; kind < rings_.size(); ++kind) before_reserve_[kind] = rings_[kind].end();
  for (size_t kind = 0; kind < rings_.size(); ++kind) {
    auto& ring = rings_[kind];
    while (ring.end() * kBlockPositions < end_position) {
      auto block = pools_.pools[kind]->allocate();
      if (!block) {
        for (size_t undo = 0; undo < rings_.size(); ++undo)
          release_from(undo, before_reserve_[undo]);
        return std::move(block).error();
      }
      ring.push_back({*block, ring.end() * kBlockPositions});
    }
  }
  return {};
}

void Sequence::commit(int64_t end_position) {
  length_ = end_position;
  for (size_t kind = 0; kind < rings_.size(); ++kind) {
    const int64_t window = pools_.kinds[kind].window;
    if (window == 0) continue;
    auto& ring = rings_[kind];
    const int64_t first_visible = length_ - window + 1;  // to a query at position length_
    while (!ring.empty() &&
           ring.at(ring.first()).first_position + kBlockPositions <= first_visible) {
      pools_.pools[kind]->release(ring.pop_front().block);
    }
  }
}

Status Sequence::rewind(int64_t length) {
  if (length < 0 || length > length_) {
    return make_error(ErrorCode::invalid_argument,
                      "cannot rewind to position {}: the sequence has {} positions", length,
                      length_);
  }
  for (size_t kind = 0; kind < rings_.size(); ++kind) {
    const int64_t window = pools_.kinds[kind].window;
    if (window == 0 || length == 0) continue;
    const auto& ring = rings_[kind];
    const int64_t first_visible = std::max<int64_t>(0, length - window + 1);
    // An empty ring counts: a window of 1 drops a block as soon as it is full.
    if (ring.first() * kBlockPositions > first_visible) {
      return make_error(ErrorCode::invalid_argument,
                        "cannot rewind to position {}: the window of {} positions has already "
                        "dropped position {}",
                        length, window, first_visible);
    }
  }
  length_ = length;
  drop_uncommitted();
  if (length == 0) {
    for (auto& ring : rings_) ring.start_at(0);
  }
  return {};
}

void Sequence::drop_uncommitted() {
  for (size_t kind = 0; kind < rings_.size(); ++kind) {
    release_from(kind, divide_up(length_, kBlockPositions));
  }
}

void Sequence::append_blocks(size_t kind, int64_t first_position, int64_t end_position,
                             std::vector<kernels::KvBlock>& out) const {
  const auto& ring = rings_[kind];
  const int64_t first = std::max(ring.first(), first_position / kBlockPositions);
  const int64_t end = std::min(ring.end(), divide_up(end_position, kBlockPositions));
  for (int64_t logical = first; logical < end; ++logical) {
    const auto& entry = ring.at(logical);
    out.push_back({pools_.pools[kind]->data(entry.block), entry.first_position});
  }
}

Sequence::Slot Sequence::slot(size_t kind, int64_t position) {
  const auto& entry = rings_[kind].at(position / kBlockPositions);
  return {pools_.pools[kind]->data(entry.block), position - entry.first_position};
}

int64_t Sequence::wasted_positions() const {
  int64_t wasted = 0;
  for (const auto& ring : rings_) {
    if (!ring.empty()) wasted += ring.end() * kBlockPositions - length_;
  }
  return wasted;
}

}  // namespace kvasir::kv
