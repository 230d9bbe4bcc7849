// Counts what this process allocates, by whatever way. Include in one file of a test program.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KVASIR_HOOKED_ALLOCATIONS
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KVASIR_HOOKED_ALLOCATIONS
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define KVASIR_HOOK_MISSES_ALIGNED
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KVASIR_HOOK_MISSES_ALIGNED
#endif
#endif

namespace kvasir::test {

inline std::atomic<int64_t> allocations{0};  ///< calls of malloc and its kin so far, by all threads

/// The thread sanitizer of clang 16 does not tell of aligned blocks; in all other builds they count.
#if defined(KVASIR_HOOK_MISSES_ALIGNED)
inline constexpr bool kCountsAligned = false;
#else
inline constexpr bool kCountsAligned = true;
#endif

inline void count_allocation() { allocations.fetch_add(1, std::memory_order_relaxed); }

}  // namespace kvasir::test

#if defined(KVASIR_HOOKED_ALLOCATIONS)

// The sanitizers own malloc; they tell of each block.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, size_t),
                                                         void (*)(const volatile void*));
namespace kvasir::test {
inline const int hooks_installed = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, size_t) { count_allocation(); }, [](const volatile void*) {});
}

#else

// The program's own malloc comes before the C library's, for libraries too; operator new calls it.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) noexcept {
  kvasir::test::count_allocation();
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) noexcept {
  kvasir::test::count_allocation();
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) noexcept {
  kvasir::test::count_allocation();
  return __libc_realloc(old, size);
}
void* memalign(size_t alignment, size_t size) noexcept {
  kvasir::test::count_allocation();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) noexcept { return memalign(alignment, size); }
int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  *memory = memalign(alignment, size);
  return *memory != nullptr ? 0 : ENOMEM;
}
}

#endif
