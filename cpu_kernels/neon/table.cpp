#include "cpu_kernels/neon/vocabulary.h"
#include "cpu_kernels/generic/table.h"

namespace kvasir::kernels::neon {

extern constexpr KernelTable kTable = generic::make_table<Isa>();

}  // namespace kvasir::kernels::neon
