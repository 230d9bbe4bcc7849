// Which set of kernels this process computes with, and why.
#pragma once

#include <string>
#include <vector>

#include "cpu_kernels/kernels.h"
#include "kvasir/result.h"

namespace kvasir {

struct KernelChoice {
  const kernels::KernelTable* table = nullptr;
  std::string reason;  ///< for people
};

/// The best set this CPU has, or the one that the environment variable KVASIR_ISA names;
/// unsupported, with the available ones, when it names one that is unknown or that the CPU lacks.
Result<KernelChoice> choose_kernels();

/// A set that this program was built with.
struct KernelSet {
  std::string name;
  std::string needs;  ///< features of the CPU
  bool available = false;
};
std::vector<KernelSet> kernel_sets();

}  // namespace kvasir
