#include <doctest/doctest.h>

#include <atomic>
#include <cfenv>
#include <limits>
#include <vector>

#include "core/threads/threads.h"

using kvasir::CancelToken;
using kvasir::Team;
using kvasir::Threads;

TEST_CASE("given 1 to 5 threads, when loops follow each other, then every item runs exactly once") {
  for (int count = 1; count <= 5; ++count) {
    auto threads = Threads::create(count);
    CHECK(threads->count() == count);
    constexpr int64_t kItems = 103;
    constexpr int kLoops = 50;
    std::vector<std::atomic<int>> hits(kItems);
    threads->run([&](Team& team) {
      for (int loop = 0; loop < kLoops; ++loop) {
        team.for_pieces(kItems, 1 + loop % 7, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) hits[static_cast<size_t>(i)]++;
        });
      }
    });
    for (const auto& hit : hits) REQUIRE(hit.load() == kLoops);
  }
}

TEST_CASE("given a barrier, when one thread writes before it, then all see the value after it") {
  auto threads = Threads::create(3);
  for (int round = 0; round < 200; ++round) {
    int value = 0;
    std::atomic<int> wrong{0};
    threads->run([&](Team& team) {
      if (team.thread() == round % 3) value = round + 1;
      team.barrier();
      if (value != round + 1) wrong++;
      team.barrier();
    });
    REQUIRE(wrong.load() == 0);
  }
}

TEST_CASE("given a cancelled token, when a loop runs, then it stops claiming items and returns") {
  auto threads = Threads::create(2);
  CancelToken cancel;
  std::atomic<int> done{0};
  threads->run(
      [&](Team& team) {
        team.for_each(1000, [&](int64_t) {
          if (done++ == 10) cancel.request();
        });
      },
      &cancel);
  CHECK(done.load() >= 11);
  CHECK(done.load() < 20);
}

TEST_CASE("given a region, when denormals are made in it, then they are kept on every thread") {
  auto threads = Threads::create(2);
  std::atomic<int> flushed{0};
  volatile float smallest_normal = std::numeric_limits<float>::min();
  threads->run([&](Team& team) {
    team.barrier();
    const volatile float half = smallest_normal * 0.5F;
    if (half == 0.0F) flushed++;
  });
  CHECK(flushed.load() == 0);
}

TEST_CASE("given this machine, when threads are advised, then the count is within what it may use") {
  const auto advice = kvasir::advise_threads();
  CHECK(advice.count >= 1);
  CHECK(advice.count <= advice.affinity);
  CHECK(advice.count <= advice.physical_cores);
  CHECK_FALSE(advice.reason.empty());
}
