// How keys and values of one layer kind lie inside a block of 32 positions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "cpu_kernels/kernels.h"

namespace kvasir::kv {

using kernels::KvType;
inline constexpr int64_t kBlockPositions = kernels::kKvBlockPositions;

std::string_view kv_type_name(KvType type);                     ///< "f32", "f16"
std::optional<KvType> find_kv_type(std::string_view name);
int64_t kv_element_bytes(KvType type);

/// Layers that keep the same positions: all with full attention, or all with one window size.
/// Their keys and values share blocks: one block holds 32 positions of every layer of the kind,
///   [layer][KV head] { keys [head_dim][32], values [32][head_dim rounded up to 16] }.
struct LayerKind {
  int64_t n_layers = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t window = 0;  ///< positions a query sees, its own included; 0: all
};

/// Byte offsets inside a block; every part starts on a cache line.
class BlockLayout {
 public:
  BlockLayout() = default;
  BlockLayout(const LayerKind& kind, KvType key_type, KvType value_type);

  size_t key_offset(int64_t layer, int64_t head) const {
    return static_cast<size_t>(layer * n_kv_heads_ + head) * head_bytes_;
  }
  size_t value_offset(int64_t layer, int64_t head) const {
    return key_offset(layer, head) + key_bytes_;
  }
  size_t block_bytes() const { return block_bytes_; }
  KvType key_type() const { return key_type_; }
  KvType value_type() const { return value_type_; }

  /// Bytes of one (layer, head) that attention over a whole block reads.
  size_t head_bytes() const { return head_bytes_; }

 private:
  int64_t n_kv_heads_ = 0;
  KvType key_type_ = KvType::f16;
  KvType value_type_ = KvType::f16;
  size_t key_bytes_ = 0;
  size_t head_bytes_ = 0;
  size_t block_bytes_ = 0;
};

}  // namespace kvasir::kv
