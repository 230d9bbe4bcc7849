#include "cpu_kernels/amx/products.h"

namespace kvasir::kernels::amx {
namespace {

constexpr KernelTable make_matmuls() {
  KernelTable table = {};
  put_matmuls<Vocabulary<CpuTiles>>(table);
  return table;
}

}  // namespace

/// Quantised products alone; everything else is AVX-512 VNNI's.
extern constexpr KernelTable kMatmuls = make_matmuls();

}  // namespace kvasir::kernels::amx
