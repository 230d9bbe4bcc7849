#include <chrono>
#include <thread>

#include "core/threads/threads.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kvasir {
namespace {

void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

constexpr auto kSpin = std::chrono::microseconds(50);
constexpr auto kSpinAlone = std::chrono::microseconds(5);

}  // namespace

void Team::barrier() {
  const int n = state_.n_threads_;
  if (n == 1) {
    state_.stopped_ = cancelled();
    return;
  }
  auto& arrived = state_.arrived_.value;
  auto& generation = state_.generation_.value;
  const int64_t now = generation.load(std::memory_order_acquire);
  if (arrived.fetch_add(1, std::memory_order_acq_rel) == n - 1) {
    state_.stopped_ = cancelled();
    arrived.store(0, std::memory_order_relaxed);
    generation.store(now + 1, std::memory_order_release);
    generation.notify_all();
    return;
  }
  // With more threads than cores the one that is waited for may need this core: then yield. On a
  // core of one's own a yield only makes the answer come later (a system call, ~0.5 us), so it
  // comes after 5 us of spinning; a step's barriers are usually 0.3 to 2 us.
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto leave = [&] {
    if (thread_ == 0) waited_ += Clock::now() - start;
  };
  for (int spin = 1;; ++spin) {
    if (generation.load(std::memory_order_acquire) != now) return leave();
    pause_briefly();
    if (spin % 16 != 0) continue;
    const auto waited = Clock::now() - start;
    if (waited > kSpin) break;
    if (waited > kSpinAlone) std::this_thread::yield();
  }
  while (generation.load(std::memory_order_acquire) == now) {
    generation.wait(now, std::memory_order_acquire);
  }
  leave();
}

}  // namespace kvasir
