// The OpenMP backend: its pool of threads, our barrier.
#include <omp.h>

#include "core/threads/denormals.h"
#include "core/threads/threads.h"

namespace kvasir {
namespace {

class OpenMpThreads final : public Threads {
 public:
  explicit OpenMpThreads(int count) : count_(count), state_(count) {}

  void run(FunctionRef<void(Team&)> region, const CancelToken* cancel) override {
    state_.begin(cancel);
    if (count_ == 1) {
      KeepDenormals keep;
      Team team(state_, 0);
      region(team);
      return;
    }
    // Dynamic adjustment would give fewer threads than our barrier waits for.
    omp_set_dynamic(0);
#pragma omp parallel num_threads(count_)
    {
      KeepDenormals keep;
      Team team(state_, omp_get_thread_num());
      region(team);
    }
  }

  int count() const override { return count_; }

 private:
  const int count_;
  TeamState state_;
};

}  // namespace

const char* Threads::backend() { return "openmp"; }

std::unique_ptr<Threads> Threads::create(int count) {
  return std::make_unique<OpenMpThreads>(count);
}

}  // namespace kvasir
