// Threads that work on one forward step together.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "kvasir/cancel.h"

namespace kvasir {

/// A reference to a callable; never owns it, so it costs no allocation.
template <class Signature>
class FunctionRef;
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
  FunctionRef(const F& f)  // NOLINT: implicit on purpose
      : object_(&f), call_([](const void* o, Args... args) -> R {
          return (*static_cast<const F*>(o))(args...);
        }) {}
  R operator()(Args... args) const { return call_(object_, args...); }

 private:
  const void* object_;
  R (*call_)(const void*, Args...);
};

/// What the threads of one region share: a barrier and the counters work is claimed from.
class TeamState {
 public:
  explicit TeamState(int n_threads) : n_threads_(n_threads) {}
  void begin(const CancelToken* cancel) {
    cancel_ = cancel;
    stopped_ = false;
    for (auto& next : next_) next.value.store(0, std::memory_order_relaxed);
  }

 private:
  friend class Team;
  struct alignas(64) Counter {
    std::atomic<int64_t> value{0};
  };
  const int n_threads_;
  const CancelToken* cancel_ = nullptr;
  bool stopped_ = false;   // written by the last to arrive at a barrier, read by all after it
  Counter arrived_;        // threads at the barrier
  Counter generation_;     // barriers passed
  Counter next_[3];        // next unclaimed item of the running, last and next loop
};

/// One thread's view of a parallel region. Every thread of the region must make the same calls
/// in the same order.
class Team {
 public:
  Team(TeamState& state, int thread) : state_(state), thread_(thread) {}

  int thread() const { return thread_; }
  int size() const { return state_.n_threads_; }

  /// Waits for all. Spins at most 50 us, then sleeps; gives its core away when there are more
  /// threads than cores.
  void barrier();

  /// Runs `work(begin, end)` over [0, n_items) in pieces of at most `piece` items, claimed in
  /// ascending order by whoever is free, then waits for all. Who runs a piece must not matter to
  /// the result. Remaining pieces are skipped once the region is cancelled.
  template <class F>
  void for_pieces(int64_t n_items, int64_t piece, const F& work) {
    auto& next = state_.next_[loop_ % 3].value;
    if (thread_ == 0) state_.next_[(loop_ + 1) % 3].value.store(0, std::memory_order_relaxed);
    for (;;) {
      const int64_t begin = next.fetch_add(piece, std::memory_order_relaxed);
      if (begin >= n_items || cancelled()) break;
      work(begin, begin + piece < n_items ? begin + piece : n_items);
    }
    ++loop_;
    barrier();
  }

  /// One item at a time.
  template <class F>
  void for_each(int64_t n_items, const F& work) {
    for_pieces(n_items, 1, [&](int64_t begin, int64_t) { work(begin); });
  }

  /// How long this thread has waited at barriers since the last call. Measured on thread 0 only (0
  /// on others): a barrier then costs it one more look at the clock, and nobody else anything.
  std::chrono::nanoseconds take_waited() { return std::exchange(waited_, {}); }

  /// What the token said when all were at the last barrier: the same answer on every thread until
  /// the next one, so it may decide which calls follow.
  bool stopped() const { return state_.stopped_; }

 private:
  bool cancelled() const { return state_.cancel_ != nullptr && state_.cancel_->requested(); }

  TeamState& state_;
  const int thread_;
  uint64_t loop_ = 0;
  std::chrono::nanoseconds waited_{0};  // on the thread's own stack, like the rest of a Team
};

/// A set of threads. `run` may be called by one thread at a time. Denormals are kept (FTZ and DAZ
/// off) inside a region, and the caller's setting is restored after it.
class Threads {
 public:
  virtual ~Threads() = default;

  /// Runs `region(team)` on every thread, the calling one included, and returns when all are done.
  virtual void run(FunctionRef<void(Team&)> region, const CancelToken* cancel = nullptr) = 0;
  virtual int count() const = 0;

  /// The backend chosen when the library was built: "openmp" or "std".
  static const char* backend();
  /// `count` >= 1.
  static std::unique_ptr<Threads> create(int count);
};

/// How many threads a machine should use, and why.
struct ThreadAdvice {
  int count = 1;
  int affinity = 1;        ///< CPUs this process may run on
  int physical_cores = 1;  ///< among them, hyperthread siblings counted once, slow cores left out
  double cgroup_quota = 0; ///< CPUs by quota; 0: unlimited
  std::string reason;      ///< one sentence
};
/// min(affinity, cgroup quota, physical performance cores), at least 1. Reads /sys and /proc.
ThreadAdvice advise_threads();

/// CPUs of quota that the control groups of this process (v1 or v2) and their parents leave; 0 when
/// there is none. `root` stands before /proc and /sys: tests give a folder of their own.
double cgroup_cpu_quota(const std::string& root = "");

}  // namespace kvasir
