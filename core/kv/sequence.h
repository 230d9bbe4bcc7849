// A sequence's keys and values: which block holds which positions, one ring for each layer kind.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/kv/block_pool.h"
#include "kvasir/result.h"

namespace kvasir::kv {

/// The pools of one engine, one for each layer kind of the model, in the model's order.
struct Pools {
  std::vector<LayerKind> kinds;
  std::vector<std::unique_ptr<BlockPool>> pools;
};

/// A ring of block numbers: logical block b is at ring[b mod capacity]. Appending past the
/// capacity makes the ring larger (numbers move, blocks never do). Positions belong to the slots:
/// every entry says which position its first slot holds.
class BlockRing {
 public:
  struct Entry {
    BlockId block = -1;
    int64_t first_position = 0;
  };

  bool empty() const { return first_ == end_; }
  int64_t first() const { return first_; }  ///< first logical block still held
  int64_t end() const { return end_; }      ///< one past the last
  const Entry& at(int64_t logical) const { return entries_[index(logical)]; }

  void push_back(Entry entry);
  Entry pop_back();
  Entry pop_front();
  /// An empty ring that starts at a later logical block (a window that was skipped into).
  void start_at(int64_t logical) { first_ = end_ = logical; }

 private:
  size_t index(int64_t logical) const {
    return static_cast<size_t>(logical) % entries_.size();
  }
  std::vector<Entry> entries_;
  int64_t first_ = 0;
  int64_t end_ = 0;
};

/// Positions [0, length) of one sequence. Not thread-safe; the pools are.
class Sequence {
 public:
  /// `pools` must outlive the sequence.
  explicit Sequence(Pools& pools);
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;
  ~Sequence();

  int64_t length() const { return length_; }

  /// Makes room for positions up to `end_position`; nothing changes when it fails.
  Status reserve(int64_t end_position);

  /// Positions up to `end_position` hold keys and values of every layer now. Blocks that no later
  /// query of a window layer can see are released.
  void commit(int64_t end_position);

  /// Forgets positions from `length` on. Fails when a window has already dropped what a query at
  /// `length` must see; then nothing changes.
  Status rewind(int64_t length);

  /// Drops room that was reserved past the committed length (a cancelled step).
  void drop_uncommitted();

  /// Appends to `out` the blocks of `kind` that hold any of [first_position, end_position), in
  /// ascending position.
  void append_blocks(size_t kind, int64_t first_position, int64_t end_position,
                     std::vector<kernels::KvBlock>& out) const;

  /// The block and slot of a reserved position, to write to.
  struct Slot {
    std::byte* block;
    int64_t slot;
  };
  Slot slot(size_t kind, int64_t position);

  const BlockLayout& layout(size_t kind) const { return pools_.pools[kind]->layout(); }

  /// Positions held in blocks but not used, over all kinds: at most 31 for each.
  int64_t wasted_positions() const;

 private:
  void release_from(size_t kind, int64_t first_logical);

  Pools& pools_;
  std::vector<BlockRing> rings_;  // one a layer kind
  std::vector<int64_t> before_reserve_;  // scratch of `reserve`, here so that no step allocates
  int64_t length_ = 0;
};

}  // namespace kvasir::kv
