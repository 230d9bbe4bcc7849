// Elements of KV blocks: how 16 of them are read and written, and how one position is stored.
#pragma once

#include "cpu_kernels/kernels.h"
#include "cpu_kernels/simd/lanes.h"

namespace kvasir::kernels::generic {

KVASIR_INLINE constexpr int64_t padded(int64_t head_dim) {
  return (head_dim + kLanes - 1) / kLanes * kLanes;
}

/// How 16 elements of a KV type are read and written.
template <class V>
struct KvF32 {
  static constexpr int64_t kBytes = 4;
  KVASIR_INLINE typename V::F load(const std::byte* p) {
    return V::F::load(reinterpret_cast<const float*>(p));
  }
  KVASIR_INLINE void store(std::byte* p, const typename V::F& x) {
    V::F::store(reinterpret_cast<float*>(p), x);
  }
};

template <class V>
struct KvF16 {
  static constexpr int64_t kBytes = 2;
  KVASIR_INLINE typename V::F load(const std::byte* p) { return V::load_half(p); }
  KVASIR_INLINE void store(std::byte* p, const typename V::F& x) { V::store_half(p, x); }
};

template <class V>
struct KvStore {
  using F = typename V::F;
  static constexpr int64_t kBlock = kKvBlockPositions;

  /// A key goes down a column of [head_dim][32]: one element a line, nothing to vectorise but the
  /// rounding.
  template <class Key>
  static void store_key(const float* key, int64_t head_dim, int64_t slot, std::byte* keys) {
    for (int64_t d = 0; d < head_dim; d += kLanes) {
      const int64_t n = head_dim - d < kLanes ? head_dim - d : int64_t{kLanes};
      alignas(64) std::byte buffer[kLanes * 4];
      Key::store(buffer, n == kLanes ? F::load(key + d) : F::load_first(key + d, n));
      for (int64_t i = 0; i < n; ++i) {
        __builtin_memcpy(keys + ((d + i) * kBlock + slot) * Key::kBytes, buffer + i * Key::kBytes,
                         Key::kBytes);
      }
    }
  }

  template <class Value>
  static void store_value(const float* value, int64_t head_dim, int64_t slot, std::byte* values) {
    std::byte* row = values + slot * padded(head_dim) * Value::kBytes;
    for (int64_t d = 0; d < head_dim; d += kLanes) {
      const int64_t n = head_dim - d;
      Value::store(row + d * Value::kBytes,
                   n >= kLanes ? F::load(value + d) : F::load_first(value + d, n));
    }
  }
};

}  // namespace kvasir::kernels::generic
