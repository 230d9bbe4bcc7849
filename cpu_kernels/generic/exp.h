// exp and tanh on 16 lanes: the operations of scalar/elementwise.cpp, in its order.
#pragma once

#include "cpu_kernels/simd/lanes.h"

namespace kvasir::kernels::generic {

/// exp(x) for x <= 0, NaN included: the same bits as exp, which has one more comparison.
template <class V>
[[gnu::always_inline]] inline typename V::F exp_nonpositive(const typename V::F& x) {
  using F = typename V::F;
  const F round = F::broadcast(12582912.0F);
  const F shifted = F::fma(x, F::broadcast(1.44269504088896341F), round);
  const F n = F::subtract(shifted, round);
  F r = F::fma(n, F::broadcast(-0.693359375F), x);
  r = F::fma(n, F::broadcast(2.12194440e-4F), r);
  F p = F::broadcast(1.9875691500e-4F);
  p = F::fma(p, r, F::broadcast(1.3981999507e-3F));
  p = F::fma(p, r, F::broadcast(8.3334519073e-3F));
  p = F::fma(p, r, F::broadcast(4.1665795894e-2F));
  p = F::fma(p, r, F::broadcast(1.6666665459e-1F));
  p = F::fma(p, r, F::broadcast(5.0000001201e-1F));
  const F y = F::add(F::fma(p, F::multiply(r, r), r), F::broadcast(1.0F));
  F result = F::scale_by_power(y, shifted);
  result = F::select_less(x, F::broadcast(-87.3F), F::broadcast(0.0F), result);
  return F::keep_nan(x, result);
}

template <class V>
[[gnu::always_inline]] inline typename V::F exp(const typename V::F& x) {
  using F = typename V::F;
  return F::select_less(F::broadcast(88.7228F), x, F::broadcast(__builtin_inff()),
                        exp_nonpositive<V>(x));
}

template <class V>
[[gnu::always_inline]] inline typename V::F tanh(const typename V::F& x) {
  using F = typename V::F;
  const F magnitude = F::magnitude(x);
  const F z = F::multiply(x, x);
  F p = F::broadcast(-5.70498872745e-3F);
  p = F::fma(p, z, F::broadcast(2.06390887954e-2F));
  p = F::fma(p, z, F::broadcast(-5.37397155531e-2F));
  p = F::fma(p, z, F::broadcast(1.33314422036e-1F));
  p = F::fma(p, z, F::broadcast(-3.33332819422e-1F));
  const F small = F::fma(F::multiply(p, z), x, x);
  const F e = exp<V>(F::add(magnitude, magnitude));
  const F one = F::broadcast(1.0F);
  const F large = F::subtract(one, F::divide(F::broadcast(2.0F), F::add(e, one)));
  return F::select_less(magnitude, F::broadcast(0.625F), small, F::with_sign_of(large, x));
}

}  // namespace kvasir::kernels::generic
