// Where the tile unit is used: the bits are the same, so only speed decides.
#pragma once

#include "cpu_kernels/kernels.h"

namespace kvasir::kernels {

/// `table` with every product that `matmuls` has.
KernelTable with_matmuls(KernelTable table, const KernelTable& matmuls);

/// `table` with those products of `matmuls` that are measured to be faster on this machine: 64
/// rows, 4 panels of 1,024 columns, one thread; some milliseconds for all formats.
KernelTable with_faster_matmuls(KernelTable table, const KernelTable& matmuls);

}  // namespace kvasir::kernels
