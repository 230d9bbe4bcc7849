// exp, log, sin, cos and pow in double precision, the same bits on every machine and libc.
// Plain IEEE operations in a written-down order; compile with -ffp-contract=off.
#pragma once

namespace kvasir::numerics {

/// Each within 2 ULP of the true value unless said otherwise; special values as in IEEE 754-2019.
double exp(double x);
double log(double x);
double pow(double base, double exponent);  ///< base > 0; within 4 ULP

struct SinCos {
  double sin;
  double cos;
};
/// Absolute error <= 1e-15 for |x| <= 2^26, argument reduced by pi/2 in three parts.
SinCos sincos(double x);

}  // namespace kvasir::numerics
