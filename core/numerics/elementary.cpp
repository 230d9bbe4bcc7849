#include "core/numerics/elementary.h"

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace kvasir::numerics {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// 1.5 * 2^52: adding it rounds to an integer (ties to even), which then is in the low bits.
constexpr double kRound = 6755399441055744.0;

/// A value as high + low, |low| <= half an ULP of high.
struct Double2 {
  double high;
  double low;
};

Double2 quick_two_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

Double2 two_sum(double a, double b) {
  const double sum = a + b;
  const double t = sum - a;
  return {sum, (a - (sum - t)) + (b - t)};
}

/// Exact product by Dekker's splitting: no fused operation, the same on every machine.
Double2 two_product(double a, double b) {
  constexpr double kSplit = 134217729.0;  // 2^27 + 1
  const double p = a * b;
  const double ta = kSplit * a;
  const double ah = ta - (ta - a);
  const double al = a - ah;
  const double tb = kSplit * b;
  const double bh = tb - (tb - b);
  const double bl = b - bh;
  return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}

double power_of_two(int64_t n) { return std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52); }

// ln 2 = high + low; high has 21 trailing zero bits, so n * high is exact for |n| < 2^21.
constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;

/// exp(high + low) for a small low; within 1 ULP.
double exp_of(Double2 x) {
  if (x.high > 709.8) return kInfinity;
  if (x.high < -745.2) return 0;
  const double shifted = x.high * 1.44269504088896338700 + kRound;
  const double n = shifted - kRound;
  const double hi = x.high - n * kLn2High;
  const double r = hi - n * kLn2Low + x.low;
  // |r| <= 0.347: Taylor to r^13 / 13! leaves r^14 / 14! < 5e-18.
  double p = 1.0 / 6227020800.0;
  constexpr double kInverseFactorials[] = {
      1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0,
      1.0 / 5040.0,      1.0 / 720.0,      1.0 / 120.0,     1.0 / 24.0,     1.0 / 6.0,
      1.0 / 2.0};
  for (const double c : kInverseFactorials) p = p * r + c;
  // exp = 1 + r + r^2 p, added from the small end; what the first sum dropped is r's own error.
  const Double2 reduced = two_sum(hi, -(n * kLn2Low) + x.low);
  const double y = 1.0 + (reduced.high + (reduced.low + r * r * p));
  // 2^n in two steps, so that results below the normal range are rounded once.
  const auto whole = static_cast<int64_t>(n);
  const int64_t first = whole / 2;
  return y * power_of_two(first) * power_of_two(whole - first);
}

/// ln(x) as high + low with about 2^-70 relative error; x positive, finite, normal or not.
Double2 log_of(double x) {
  int64_t exponent = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 18014398509481984.0;  // 2^54
    exponent = -54;
  }
  auto bits = std::bit_cast<uint64_t>(x);
  exponent += static_cast<int64_t>(bits >> 52) - 1023;
  bits = (bits & 0xFFFFFFFFFFFFFULL) | (1023ULL << 52);
  double m = std::bit_cast<double>(bits);
  if (m > 1.41421356237309504880) {
    m *= 0.5;
    exponent += 1;
  }
  // ln m = 2 atanh(s), s = (m - 1) / (m + 1), |s| <= 0.1716; s as high + low.
  const double a = m - 1.0;  // exact
  const Double2 b = two_sum(m, 1.0);
  const double s = a / b.high;
  const Double2 back = two_product(s, b.high);
  const double s_low = ((a - back.high) - back.low - s * b.low) / b.high;
  const double z = s * s;
  // 2 s (1 + z/3 + z^2/5 + ...): z^n / (2n + 1) with z <= 0.02945 is below 1e-20 at n = 12.
  double p = 1.0 / 25.0;
  for (const double c : {1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9,
                         1.0 / 7, 1.0 / 5})
    p = p * z + c;
  // z (1/3 + z p) with 1/3 in two parts, to keep what a double alone would round away.
  const Double2 zz = two_product(s, s);
  const double z_low = zz.low + 2.0 * s * s_low;
  constexpr double kThird = 1.0 / 3.0;
  constexpr double kThirdLow = 1.85037170770859413132e-17;
  const Double2 third = two_product(zz.high, kThird);
  const double tail = third.low + z_low * kThird + zz.high * kThirdLow + zz.high * zz.high * p;
  const Double2 q = quick_two_sum(third.high, tail);  // the series after its leading 1
  const Double2 sq = two_product(s, q.high);
  const Double2 sum = two_sum(s, sq.high);
  const double low = sum.low + sq.low + s * q.low + s_low + s_low * q.high;
  const double n = static_cast<double>(exponent);
  const Double2 base = two_sum(n * kLn2High, 2.0 * sum.high);
  return quick_two_sum(base.high, base.low + 2.0 * low + n * kLn2Low);
}

}  // namespace

double exp(double x) {
  if (x != x) return x;
  return exp_of({x, 0});
}

double log(double x) {
  if (x != x || x == kInfinity) return x;
  if (x < 0) return kNan;
  if (x == 0) return -kInfinity;
  return log_of(x).high;
}

double pow(double base, double exponent) {
  if (exponent == 0 || base == 1) return 1;
  if (base != base || exponent != exponent || base < 0) return kNan;
  const bool grows = (base > 1) == (exponent > 0);
  if (base == 0 || base == kInfinity || exponent == kInfinity || exponent == -kInfinity)
    return grows ? kInfinity : 0;
  const Double2 l = log_of(base);
  const double estimate = l.high * exponent;
  if (estimate > 800) return kInfinity;
  if (estimate < -800) return 0;
  const Double2 p = two_product(l.high, exponent);
  return exp_of({p.high, p.low + l.low * exponent});
}

SinCos sincos(double x) {
  if (!(x >= -1e300 && x <= 1e300)) return {kNan, kNan};
  // x - n * pi/2 with pi/2 in three parts, the first two with 33 bits: exact for |n| < 2^20, and
  // for larger n the products are made exact by splitting.
  constexpr double kHalfPi1 = 1.57079632673412561417e+00;
  constexpr double kHalfPi2 = 6.07710050630396597660e-11;
  constexpr double kHalfPi3 = 2.02226624879595063154e-21;
  const double n = (x * 0.63661977236758134308 + kRound) - kRound;
  const Double2 p1 = two_product(n, kHalfPi1);
  const Double2 p2 = two_product(n, kHalfPi2);
  const Double2 a = two_sum(x, -p1.high);
  const Double2 b = two_sum(a.high, -p2.high);
  const double low = a.low - p1.low + b.low - p2.low - n * kHalfPi3;
  const Double2 r = quick_two_sum(b.high, low);
  const double z = r.high * r.high;
  // |r| <= 0.786: Taylor to r^17 and r^18; the first terms dropped are below 1e-19.
  double s = 1.0 / 355687428096000.0;  // 1/17!
  for (const double c : {-1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0,
                         1.0 / 362880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0})
    s = s * z + c;
  double c = -1.0 / 6402373705728000.0;  // 1/18!
  for (const double k : {1.0 / 20922789888000.0, -1.0 / 87178291200.0, 1.0 / 479001600.0,
                         -1.0 / 3628800.0, 1.0 / 40320.0, -1.0 / 720.0, 1.0 / 24.0})
    c = c * z + k;
  const double half_z = 0.5 * z;
  const double one = 1.0 - half_z;
  const double sine = r.high + (r.high * z * s + r.low * one);
  const double cosine = one + (((1.0 - one) - half_z) + (z * z * c - r.high * r.low));
  switch (static_cast<int64_t>(n) & 3) {
    case 0: return {sine, cosine};
    case 1: return {cosine, -sine};
    case 2: return {-sine, -cosine};
    default: return {-cosine, sine};
  }
}

}  // namespace kvasir::numerics
