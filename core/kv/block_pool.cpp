#include "core/kv/block_pool.h"

#include <cstring>

#include "core/base/error.h"

namespace kvasir::kv {

BlockPool::BlockPool(BlockLayout layout, int64_t budget_blocks)
    : layout_(layout), budget_blocks_(budget_blocks) {
  slots_.reserve(static_cast<size_t>(budget_blocks));
  free_.reserve(static_cast<size_t>(budget_blocks));
  empty_.reserve(static_cast<size_t>(budget_blocks));
}

Result<BlockId> BlockPool::allocate() {
  const std::lock_guard lock(mutex_);
  if (statistics_.blocks_in_use >= budget_blocks_) {
    return make_error(ErrorCode::out_of_memory,
                      "the KV budget of {} blocks ({} positions, {:.1f} MB) is used up",
                      budget_blocks_, budget_blocks_ * kBlockPositions,
                      static_cast<double>(layout_.block_bytes()) *
                          static_cast<double>(budget_blocks_) / 1e6);
  }
  BlockId id;
  if (!free_.empty()) {
    id = free_.back();
    free_.pop_back();
  } else {
    auto memory = AlignedBuffer::allocate(layout_.block_bytes());
    if (!memory) return std::move(memory).error();
    if (!empty_.empty()) {
      id = empty_.back();
      empty_.pop_back();
    } else {
      id = static_cast<BlockId>(slots_.size());
      slots_.emplace_back();
    }
    auto& slot = slots_[static_cast<size_t>(id)];
    slot.memory = std::move(*memory);
    slot.address = slot.memory.data();
    statistics_.bytes_allocated += layout_.block_bytes();
  }
  slots_[static_cast<size_t>(id)].references = 1;
  statistics_.blocks_in_use++;
  statistics_.references++;
  statistics_.blocks_ever++;
  return id;
}

void BlockPool::add_reference(BlockId id) {
  const std::lock_guard lock(mutex_);
  slots_[static_cast<size_t>(id)].references++;
  statistics_.references++;
}

void BlockPool::release(BlockId id) {
  const std::lock_guard lock(mutex_);
  auto& slot = slots_[static_cast<size_t>(id)];
  statistics_.references--;
  if (--slot.references > 0) return;
#ifndef NDEBUG
  std::memset(slot.address, 0xFF, layout_.block_bytes());  // NaN in every float format
#endif
  free_.push_back(id);
  statistics_.blocks_in_use--;
}

void BlockPool::trim() {
  const std::lock_guard lock(mutex_);
  for (const BlockId id : free_) {
    auto& slot = slots_[static_cast<size_t>(id)];
    slot.memory = AlignedBuffer();
    slot.address = nullptr;
    empty_.push_back(id);
    statistics_.bytes_allocated -= layout_.block_bytes();
  }
  free_.clear();
}

PoolStatistics BlockPool::statistics() const {
  const std::lock_guard lock(mutex_);
  PoolStatistics now = statistics_;
  now.blocks_free = static_cast<int64_t>(free_.size());
  return now;
}

}  // namespace kvasir::kv
