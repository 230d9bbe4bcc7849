#include "cpu_kernels/avx512vnni/vocabulary.h"
#include "cpu_kernels/generic/table.h"

namespace kvasir::kernels::avx512vnni {

extern constexpr KernelTable kTable = generic::make_table<Isa>();

}  // namespace kvasir::kernels::avx512vnni
