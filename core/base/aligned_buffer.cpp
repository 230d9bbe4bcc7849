#include "core/base/aligned_buffer.h"

#include <cstdlib>

#include "core/base/error.h"

namespace kvasir {

void AlignedBuffer::Free::operator()(std::byte* p) const { std::free(p); }

Result<AlignedBuffer> AlignedBuffer::allocate(size_t size_bytes) {
  AlignedBuffer buffer;
  if (size_bytes == 0) return buffer;
  if (size_bytes > SIZE_MAX - kCacheLineBytes)
    return make_error(ErrorCode::out_of_memory, "cannot allocate {} bytes", size_bytes);
  const size_t rounded = (size_bytes + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
  auto* p = static_cast<std::byte*>(std::aligned_alloc(kCacheLineBytes, rounded));
  if (p == nullptr)
    return make_error(ErrorCode::out_of_memory, "cannot allocate {} bytes", size_bytes);
  buffer.data_.reset(p);
  buffer.size_ = size_bytes;
  return buffer;
}

}  // namespace kvasir
