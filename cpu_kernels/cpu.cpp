#include "cpu_kernels/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace kvasir::kernels {

#if defined(__x86_64__)
namespace {

struct Registers {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(uint32_t leaf, uint32_t subleaf) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d) == 0) return {};
  return r;
}

/// XCR0: which register states the operating system saves.
uint64_t saved_states() {
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

/// Asks Linux for the tiles' state, which a process does not have before it asks.
bool request_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool bit(uint32_t word, int n) {
  return ((word >> n) & 1U) != 0;
}

}  // namespace

CpuFeatures detect_cpu() {
  CpuFeatures found;
  const Registers one = cpuid(1, 0);
  const bool osxsave = bit(one.c, 27);
  if (!osxsave) return found;
  const uint64_t states = saved_states();
  const bool ymm = (states & 0x6) == 0x6;    // SSE and AVX
  const bool zmm = (states & 0xE6) == 0xE6;  // and opmask, ZMM0-15 upper halves, ZMM16-31
  const Registers seven = cpuid(7, 0);
  const bool fma = bit(one.c, 12);
  const bool f16c = bit(one.c, 29);
  found.avx2 = ymm && bit(one.c, 28) && bit(seven.b, 5) && fma && f16c;
  // F 16, DQ 17, CD 28, BW 30, VL 31 of EBX; VNNI is bit 11 of ECX.
  found.avx512 = found.avx2 && zmm && bit(seven.b, 16) && bit(seven.b, 17) && bit(seven.b, 28) &&
                 bit(seven.b, 30) && bit(seven.b, 31);
  found.avx512vnni = found.avx512 && bit(seven.c, 11);
  // AMX-TILE 24 and AMX-INT8 25 of EDX; the states XTILECFG 17 and XTILEDATA 18.
  const bool tiles = (states & 0x60000) == 0x60000;
  found.amx = found.avx512vnni && tiles && bit(seven.d, 24) && bit(seven.d, 25) && request_tiles();
  found.avxvnni = found.avx2 && bit(cpuid(7, 1).a, 4);
  return found;
}

#elif defined(__aarch64__)

// Advanced SIMD is part of every AArch64 system we run on.
CpuFeatures detect_cpu() {
  CpuFeatures found;
  found.neon = true;
  found.neon_dotprod = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
  return found;
}

#else

CpuFeatures detect_cpu() {
  return {};
}

#endif

}  // namespace kvasir::kernels
