#include "cpu_kernels/avx2/vocabulary.h"
#include "cpu_kernels/generic/table.h"

namespace kvasir::kernels::avx2 {

extern constexpr KernelTable kTable = generic::make_table<Isa>();

}  // namespace kvasir::kernels::avx2
