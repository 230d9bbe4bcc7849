#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
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

TEST_CASE("given a thread that comes 20 ms late, when thread 0 waits for it, then that time is told") {
  auto threads = Threads::create(2);
  std::chrono::nanoseconds waited{0}, again{0}, other{0};
  threads->run([&](Team& team) {
    team.barrier();
    team.take_waited();
    if (team.thread() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    team.barrier();
    if (team.thread() == 1) other = team.take_waited();
    if (team.thread() != 0) return;
    waited = team.take_waited();
    again = team.take_waited();
  });
  CHECK(waited >= std::chrono::milliseconds(15));
  CHECK(waited < std::chrono::seconds(5));
  CHECK(again.count() == 0);
  CHECK(other.count() == 0);
}

namespace {

/// A folder that looks like / to those who read control groups; removed at the end.
struct FakeRoot {
  std::filesystem::path path;
  FakeRoot() {
    path = std::filesystem::temp_directory_path() / ("kvasir-cgroup-" + std::to_string(getpid()));
    std::filesystem::remove_all(path);
  }
  ~FakeRoot() { std::filesystem::remove_all(path); }
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((path / file).parent_path());
    std::ofstream(path / file) << text;
  }
  double quota() const { return kvasir::cgroup_cpu_quota(path.string()); }
};

}  // namespace

TEST_CASE("given control groups of version 2, when the quota is asked for, then the least one counts") {
  const FakeRoot root;
  CHECK(root.quota() == 0);  // no files at all
  root.write("proc/self/cgroup", "0::/user.slice/app.service\n");
  root.write("sys/fs/cgroup/user.slice/app.service/cpu.max", "max 100000\n");
  CHECK(root.quota() == 0);
  root.write("sys/fs/cgroup/user.slice/app.service/cpu.max", "250000 100000\n");
  CHECK(root.quota() == 2.5);
  root.write("sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");  // the parent gives less
  CHECK(root.quota() == 1.5);
  root.write("sys/fs/cgroup/cpu.max", "50000 100000\n");  // a container sees its own group as the root
  CHECK(root.quota() == 0.5);
}

TEST_CASE("given control groups of version 1, when the quota is asked for, then -1 is none") {
  const FakeRoot root;
  root.write("proc/self/cgroup", "7:memory:/a\n4:cpu,cpuacct:/docker/x\n");
  root.write("sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us", "100000\n");
  CHECK(root.quota() == 0);
  root.write("sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us", "300000\n");
  CHECK(root.quota() == 3);
}

TEST_CASE("given files that are not as the kernel writes them, when read, then there is no quota") {
  const FakeRoot root;
  root.write("proc/self/cgroup", "nonsense\n0::\n0::/../..\n:::\n0::/\n");
  for (const char* text : {"", "\n", "x y\n", "100000\n", "100000 0\n", "-5 100000\n", "0 100000\n",
                           "99999999999999999999999 100000\n"}) {
    root.write("sys/fs/cgroup/cpu.max", text);
    CHECK(root.quota() == 0);
  }
}
