// The table of one vocabulary.
#pragma once

#include "cpu_kernels/generic/attention.h"
#include "cpu_kernels/generic/elementwise.h"
#include "cpu_kernels/generic/matmul_dense.h"
#include "cpu_kernels/generic/matmul_quantized.h"
#include "cpu_kernels/generic/peak.h"

namespace kvasir::kernels::generic {

template <class V>
constexpr KernelTable make_table() {
  using E = Elementwise<V>;
  using A = Attention<V>;
  return {
      .name = V::kName,
      // In the order of WeightFormat.
      .matmul = {DenseMatmul<V, DenseF32<V>>::run, DenseMatmul<V, DenseF16<V>>::run,
                 DenseMatmul<V, DenseBF16<V>>::run, QuantizedMatmul<Q4_0<V>>::run,
                 QuantizedMatmul<Q4_1<V>>::run, QuantizedMatmul<Q5_0<V>>::run,
                 QuantizedMatmul<Q5_1<V>>::run, QuantizedMatmul<Q8_0<V>>::run,
                 QuantizedMatmul<Iq4Nl<V>>::run, QuantizedMatmul<Mxfp4<V>>::run,
                 QuantizedMatmul<Q2K<V>>::run, QuantizedMatmul<Q3K<V>>::run,
                 QuantizedMatmul<Q4K<V>>::run, QuantizedMatmul<Q5K<V>>::run,
                 QuantizedMatmul<Q6K<V>>::run, QuantizedMatmul<Iq4Xs<V>>::run,
                 QuantizedMatmul<Iq2Xxs<V>>::run, QuantizedMatmul<Iq2Xs<V>>::run,
                 QuantizedMatmul<Iq2S<V>>::run, QuantizedMatmul<Iq3Xxs<V>>::run,
                 QuantizedMatmul<Iq3S<V>>::run, QuantizedMatmul<Iq1S<V>>::run,
                 QuantizedMatmul<Iq1M<V>>::run, QuantizedMatmul<Tq1_0<V>>::run,
                 QuantizedMatmul<Tq2_0<V>>::run},
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
}

}  // namespace kvasir::kernels::generic
