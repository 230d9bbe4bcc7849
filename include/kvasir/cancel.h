// A switch that any thread may throw to stop a running call.
#pragma once

#include <atomic>

namespace kvasir {

/// Polled between work items. `request` may be called from any thread and from a signal handler.
class CancelToken {
 public:
  void request() { requested_.store(true, std::memory_order_relaxed); }
  void reset() { requested_.store(false, std::memory_order_relaxed); }
  bool requested() const { return requested_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> requested_{false};
};

}  // namespace kvasir
