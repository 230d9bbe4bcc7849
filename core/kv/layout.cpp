#include "core/kv/layout.h"

#include "core/base/aligned_buffer.h"
#include "core/base/checked.h"

namespace kvasir::kv {
namespace {

struct TypeRow {
  KvType type;
  std::string_view name;
  int64_t element_bytes;
};
constexpr TypeRow kTypes[] = {{KvType::f32, "f32", 4}, {KvType::f16, "f16", 2}};
static_assert(std::size(kTypes) == static_cast<size_t>(KvType::count));

}  // namespace

std::string_view kv_type_name(KvType type) { return kTypes[static_cast<size_t>(type)].name; }

int64_t kv_element_bytes(KvType type) { return kTypes[static_cast<size_t>(type)].element_bytes; }

std::optional<KvType> find_kv_type(std::string_view name) {
  for (const auto& row : kTypes) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

BlockLayout::BlockLayout(const LayerKind& kind, KvType key_type, KvType value_type)
    : n_kv_heads_(kind.n_kv_heads), key_type_(key_type), value_type_(value_type) {
  constexpr auto kLine = static_cast<int64_t>(kCacheLineBytes);
  const int64_t value_stride = round_up(kind.head_dim, kernels::kLanes);
  const int64_t key_bytes =
      round_up(kind.head_dim * kBlockPositions * kv_element_bytes(key_type), kLine);
  const int64_t value_bytes =
      round_up(value_stride * kBlockPositions * kv_element_bytes(value_type), kLine);
  key_bytes_ = static_cast<size_t>(key_bytes);
  head_bytes_ = static_cast<size_t>(key_bytes + value_bytes);
  block_bytes_ = head_bytes_ * static_cast<size_t>(kind.n_layers * kind.n_kv_heads);
}

}  // namespace kvasir::kv
