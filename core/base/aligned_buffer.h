// Memory that starts on a cache line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kvasir/result.h"

namespace kvasir {

inline constexpr size_t kCacheLineBytes = 64;

/// Owns `size` bytes aligned to 64; contents are uninitialised. Movable, not copyable.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  AlignedBuffer(AlignedBuffer&&) noexcept = default;
  AlignedBuffer& operator=(AlignedBuffer&&) noexcept = default;

  /// Fails with out_of_memory, naming the size; never throws.
  static Result<AlignedBuffer> allocate(size_t size_bytes);

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  size_t size() const { return size_; }

  /// The buffer seen as an array of T.
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data_.get());
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data_.get());
  }

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte[], Free> data_;
  size_t size_ = 0;
};

}  // namespace kvasir
