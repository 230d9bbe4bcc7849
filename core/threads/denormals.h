// Keeps denormal numbers while arithmetic of ours runs, whatever the host program had set.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kvasir {

/// FTZ and DAZ (x86) or FZ (ARM) are off while this lives and as before afterwards. A host that
/// was built with -ffast-math sets them for the whole thread, which would change our bits.
class KeepDenormals {
 public:
#if defined(__x86_64__)
  KeepDenormals() : saved_(_mm_getcsr()) { _mm_setcsr(kDefault); }
  ~KeepDenormals() { _mm_setcsr(saved_); }

 private:
  static constexpr uint32_t kDefault = 0x1F80;  // all exceptions masked, round to nearest even
  uint32_t saved_;
#elif defined(__aarch64__)
  KeepDenormals() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" : : "r"(uint64_t{0}));
  }
  ~KeepDenormals() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }

 private:
  uint64_t saved_ = 0;
#endif
  KeepDenormals(const KeepDenormals&) = delete;
  KeepDenormals& operator=(const KeepDenormals&) = delete;
};

}  // namespace kvasir
