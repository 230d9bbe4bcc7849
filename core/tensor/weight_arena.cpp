#include "core/tensor/weight_arena.h"

#include <sys/mman.h>

#include <utility>

#include "core/base/error.h"

namespace kvasir {
namespace {
constexpr size_t kHugePage = size_t{2} << 20;
}

WeightArena::WeightArena(WeightArena&& other) noexcept { *this = std::move(other); }

WeightArena& WeightArena::operator=(WeightArena&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

WeightArena::~WeightArena() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

Result<WeightArena> WeightArena::allocate(size_t size_bytes) {
  WeightArena arena;
  if (size_bytes == 0) return arena;
  if (size_bytes > SIZE_MAX - 2 * kHugePage)
    return make_error(ErrorCode::out_of_memory, "cannot allocate {} bytes", size_bytes);
  const size_t with_slack = size_bytes + kHugePage;
  void* mapping = mmap(nullptr, with_slack, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    return make_error(ErrorCode::out_of_memory, "cannot allocate {:.1f} MB for weights",
                      static_cast<double>(size_bytes) / 1e6);
  }
  arena.mapping_ = mapping;
  arena.mapping_bytes_ = with_slack;
  const auto address = reinterpret_cast<uintptr_t>(mapping);
  arena.data_ = reinterpret_cast<std::byte*>((address + kHugePage - 1) / kHugePage * kHugePage);
  arena.size_ = size_bytes;
  // Advice only: without huge pages everything works, a little slower.
  (void)madvise(arena.data_, size_bytes, MADV_HUGEPAGE);
  return arena;
}

}  // namespace kvasir
