// Blocks of 32 positions, allocated when they are needed and counted by who refers to them.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "core/base/aligned_buffer.h"
#include "core/kv/layout.h"
#include "kvasir/result.h"

namespace kvasir::kv {

using BlockId = int32_t;

struct PoolStatistics {
  int64_t blocks_in_use = 0;
  int64_t blocks_free = 0;       ///< allocated, referred to by nobody
  int64_t references = 0;        ///< sum over blocks in use; above blocks_in_use: shared
  int64_t blocks_ever = 0;       ///< blocks handed out since the pool was made
  size_t bytes_allocated = 0;    ///< in use and free
};

/// A pool for one layer kind. A block's address never changes while it is in use; growing copies
/// nothing. Debug builds fill released blocks with NaN patterns. All calls are thread-safe.
class BlockPool {
 public:
  /// `budget_blocks`: the most blocks in use at one time.
  BlockPool(BlockLayout layout, int64_t budget_blocks);

  /// A block with one reference, contents undefined. out_of_memory when over budget (naming the
  /// budget) or when the system refuses.
  Result<BlockId> allocate();

  void add_reference(BlockId id);
  /// Returns the block to the free list when nobody refers to it any more.
  void release(BlockId id);

  /// Gives the memory of free blocks back to the system.
  void trim();

  /// Base address; valid while the caller holds a reference. Costs no lock: the address is read
  /// from memory that only `allocate` changes, and the caller's id came from there.
  std::byte* data(BlockId id) { return slots_[static_cast<size_t>(id)].address; }
  const std::byte* data(BlockId id) const { return slots_[static_cast<size_t>(id)].address; }

  const BlockLayout& layout() const { return layout_; }
  int64_t budget_blocks() const { return budget_blocks_; }
  PoolStatistics statistics() const;

 private:
  struct Slot {
    AlignedBuffer memory;
    std::byte* address = nullptr;
    int32_t references = 0;
  };

  BlockLayout layout_;
  int64_t budget_blocks_;
  mutable std::mutex mutex_;
  std::vector<Slot> slots_;       // reserved to the budget once, so that it never moves
  std::vector<BlockId> free_;     // slots with memory, unreferenced
  std::vector<BlockId> empty_;    // slots whose memory was trimmed
  PoolStatistics statistics_;
};

}  // namespace kvasir::kv
