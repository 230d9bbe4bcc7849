#include "cpu_kernels/scalar/definitions.h"

namespace kvasir::kernels {
namespace {

constexpr KernelTable make_table() {
  KernelTable table = {
      .name = "scalar",
      .matmul = {scalar::matmul_f32, scalar::matmul_f16, scalar::matmul_bf16},
      .quantize = scalar::quantize,
      .quantize_wide = scalar::quantize_wide,
      .rms_norm = scalar::rms_norm,
      .swiglu = scalar::swiglu,
      .geglu = scalar::geglu,
      .add = scalar::add,
      .rope = scalar::rope,
      .store_key = {scalar::store_key_f32, scalar::store_key_f16},
      .store_value = {scalar::store_value_f32, scalar::store_value_f16},
      .attention = scalar::attention,
      .attention_merge = scalar::attention_merge,
      .attention_finish = scalar::attention_finish,
      .softmax = scalar::softmax,
      .argmax = scalar::argmax,
      .all_finite = scalar::all_finite,
      .multiply_add_peak = scalar::multiply_add_peak,
  };
  for (auto& matmul : table.matmul) {
    if (matmul == nullptr) matmul = scalar::matmul_quantized;
  }
  return table;
}

}  // namespace

const KernelTable& scalar_kernels() {
  static constexpr KernelTable kTable = make_table();
  return kTable;
}

}  // namespace kvasir::kernels
