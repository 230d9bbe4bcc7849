// What this CPU and its operating system can execute.
#pragma once

namespace kvasir::kernels {

/// A feature counts only when the operating system saves the registers it needs (XGETBV).
struct CpuFeatures {
  bool avx2 = false;        ///< AVX2, FMA and F16C together
  bool avx512 = false;      ///< AVX-512 F, CD, BW, DQ and VL together
  bool avx512vnni = false;  ///< the same with VNNI
  bool amx = false;         ///< AVX-512 VNNI as above with AMX tiles of int8, which the system must grant
  bool avxvnni = false;     ///< AVX2 as above with AVX-VNNI
  bool neon = false;        ///< AArch64 Advanced SIMD
  bool neon_dotprod = false;  ///< with the dot product extension
};

CpuFeatures detect_cpu();

}  // namespace kvasir::kernels
