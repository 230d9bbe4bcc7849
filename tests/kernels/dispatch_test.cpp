#include <cstdlib>

#include "cpu_kernels/cpu.h"
#include "tests/kernels/isas.h"

using namespace kvasir::kernels;        // NOLINT
using namespace kvasir::kernels::test;  // NOLINT

TEST_CASE("given no wish, when kernels are chosen, then they are the best this CPU has") {
  const char* why = nullptr;
  const auto* best = choose_kernels(nullptr, &why);
  REQUIRE(best != nullptr);
  int count = 0;
  const auto* choices = kernel_choices(&count);
  int last = 0;
  for (int i = 0; i < count; ++i)
    if (choices[i].cpu_has_it) last = i;
  CHECK(best == choices[last].table);
  CHECK(choose_kernels("", &why) == best);
  MESSAGE("this machine runs " << std::string(best->name));
  // tests/kernels/meson.build emulates old CPUs and says what they must get.
  if (const char* expected = std::getenv("KVASIR_TEST_EXPECTED_ISA"))
    CHECK(std::string(best->name) == expected);
}

TEST_CASE("given a name, when kernels are forced, then exactly those are used or it is refused") {
  int count = 0;
  const auto* choices = kernel_choices(&count);
  CHECK(std::string(choices[0].name) == "scalar");
  for (int i = 0; i < count; ++i) {
    const char* why = nullptr;
    const auto* table = choose_kernels(choices[i].name, &why);
    if (choices[i].cpu_has_it) {
      REQUIRE(table == choices[i].table);
      CHECK(std::string(table->name) == choices[i].name);
    } else {
      CHECK(table == nullptr);
      CHECK(std::string(why).find("lacks") != std::string::npos);
    }
  }
  const char* why = nullptr;
  CHECK(choose_kernels("avx9000", &why) == nullptr);
  CHECK(std::string(why) == "unknown instruction set");
}

TEST_CASE("given the compiler's view of this CPU, when detected by us, then both agree") {
#if defined(__x86_64__)
  const auto cpu = detect_cpu();
  __builtin_cpu_init();
  CHECK(cpu.avx2 == (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")));
  CHECK(cpu.avx512 == (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")));
  CHECK(cpu.avx512vnni == (cpu.avx512 && __builtin_cpu_supports("avx512vnni")));
#endif
}

TEST_CASE("given rounds, when the integer peak is run, then it counts in proportion") {
  std::vector<const KernelTable*> tables = vector_tables();
  tables.push_back(&scalar_kernels());
  for (const auto* table : tables) {
    const int64_t one = table->multiply_add_peak(1);
    CHECK(one > 0);
    CHECK(table->multiply_add_peak(7) == 7 * one);
    CHECK(table->multiply_add_peak(0) == 0);
  }
}
