// The std::thread backend: workers that sleep between regions.
#include <thread>
#include <vector>

#include "core/threads/denormals.h"
#include "core/threads/threads.h"

namespace kvasir {
namespace {

class StdThreads final : public Threads {
 public:
  explicit StdThreads(int count) : count_(count), state_(count) {
    workers_.reserve(static_cast<size_t>(count - 1));
    for (int thread = 1; thread < count; ++thread) {
      workers_.emplace_back([this, thread] { work(thread); });
    }
  }

  ~StdThreads() override {
    stop_.store(true, std::memory_order_relaxed);
    start_.fetch_add(1, std::memory_order_release);
    start_.notify_all();
    for (auto& worker : workers_) worker.join();
  }

  void run(FunctionRef<void(Team&)> region, const CancelToken* cancel) override {
    state_.begin(cancel);
    region_ = &region;
    running_.store(count_ - 1, std::memory_order_relaxed);
    start_.fetch_add(1, std::memory_order_release);
    start_.notify_all();
    {
      KeepDenormals keep;
      Team team(state_, 0);
      region(team);
    }
    for (int left = running_.load(std::memory_order_acquire); left != 0;
         left = running_.load(std::memory_order_acquire)) {
      running_.wait(left, std::memory_order_acquire);
    }
  }

  int count() const override { return count_; }

 private:
  void work(int thread) {
    KeepDenormals keep;
    for (int64_t seen = 0;;) {
      start_.wait(seen, std::memory_order_acquire);
      seen = start_.load(std::memory_order_acquire);
      if (stop_.load(std::memory_order_relaxed)) return;
      Team team(state_, thread);
      (*region_)(team);
      if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_all();
    }
  }

  const int count_;
  TeamState state_;
  const FunctionRef<void(Team&)>* region_ = nullptr;
  std::atomic<int64_t> start_{0};
  std::atomic<int> running_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace

const char* Threads::backend() { return "std"; }

std::unique_ptr<Threads> Threads::create(int count) { return std::make_unique<StdThreads>(count); }

}  // namespace kvasir
