// The table of one vocabulary.
#pragma once

#include "cpu_kernels/generic/attention.h"
#include "cpu_kernels/generic/elementwise.h"
#include "cpu_kernels/generic/matmul_dense.h"
#include "cpu_kernels/generic/matmul_quantized.h"
#include "cpu_kernels/generic/peak.h"

namespace kvasir::kernels::generic {

template <class Format, WeightFormat>
using AnyBatch = QuantizedMatmul<Format>;

template <class V>
constexpr KernelTable make_table() {
  using E = Elementwise<V>;
  using A = Attention<V>;
  KernelTable table = {
      .name = V::kName,
      .matmul = {DenseMatmul<V, DenseF32<V>>::run, DenseMatmul<V, DenseF16<V>>::run,
                 DenseMatmul<V, DenseBF16<V>>::run},
      .quantize = E::quantize,
      .quantize_wide = E::quantize_wide,
      .rms_norm = E::rms_norm,
      .swiglu = E::swiglu,
      .geglu = E::geglu,
      .add = E::add,
      .rope = E::rope,
      .store_key = {A::template store_key<KvF32<V>>, A::template store_key<KvF16<V>>},
      .store_value = {A::template store_value<KvF32<V>>, A::template store_value<KvF16<V>>},
      .attention = A::run,
      .attention_merge = A::merge,
      .attention_finish = A::finish,
      .softmax = E::softmax,
      .argmax = E::argmax,
      .all_finite = E::all_finite,
      .multiply_add_peak = multiply_add_peak<V>,
  };
  put_quantized<V, AnyBatch>(table);
  return table;
}

}  // namespace kvasir::kernels::generic
