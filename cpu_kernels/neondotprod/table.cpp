#include "cpu_kernels/generic/table.h"

#include "cpu_kernels/neondotprod/vocabulary.h"

namespace kvasir::kernels::neondotprod {

extern constexpr KernelTable kTable = generic::make_table<Isa>();

}  // namespace kvasir::kernels::neondotprod
