#include "cpu_kernels/generic/table.h"

#include "cpu_kernels/avxvnni/vocabulary.h"

namespace kvasir::kernels::avxvnni {

extern constexpr KernelTable kTable = generic::make_table<Isa>();

}  // namespace kvasir::kernels::avxvnni
