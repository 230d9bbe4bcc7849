#include "core/numerics/elementary.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

using namespace kvasir;  // NOLINT

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

/// Distance in units of the last place of the expected value (80-bit long double as reference).
double ulps(double got, long double expected) {
  int exponent = 0;
  std::frexp(static_cast<double>(expected), &exponent);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - expected) /
                             std::ldexp(1.0L, std::max(exponent, -1021) - 53));
}

class Random {
 public:
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  double between(double low, double high) { return low + (high - low) * unit(); }

 private:
  std::mt19937_64 engine_{42};
};

}  // namespace

TEST_CASE("given the whole range, when exp is taken, then it is within 2 ULP of the true value") {
  Random random;
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const double x = random.between(-708, 709.7);
    worst = std::max(worst, ulps(numerics::exp(x), std::exp(static_cast<long double>(x))));
  }
  MESSAGE("worst error of exp: " << worst << " ULP");
  CHECK(worst < 2);
  CHECK(numerics::exp(0) == 1);
  CHECK(numerics::exp(-0.0) == 1);
  CHECK(numerics::exp(710) == kInfinity);
  CHECK(numerics::exp(kInfinity) == kInfinity);
  CHECK(numerics::exp(-kInfinity) == 0);
  CHECK(numerics::exp(-800) == 0);
  CHECK(numerics::exp(-740) > 0);  // subnormal
  CHECK(std::isnan(numerics::exp(kNan)));
}

TEST_CASE("given positive numbers, when log is taken, then it is within 2 ULP of the true value") {
  Random random;
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const double x = i % 2 == 0 ? std::exp2(random.between(-1070, 1023)) : random.between(0.5, 2);
    worst = std::max(worst, ulps(numerics::log(x), std::log(static_cast<long double>(x))));
  }
  MESSAGE("worst error of log: " << worst << " ULP");
  CHECK(worst < 2);
  CHECK(numerics::log(1) == 0);
  CHECK(numerics::log(0) == -kInfinity);
  CHECK(numerics::log(kInfinity) == kInfinity);
  CHECK(std::isnan(numerics::log(-1)));
  CHECK(std::isnan(numerics::log(kNan)));
}

TEST_CASE("given bases and exponents, when raised, then it is within 4 ULP of the true value") {
  Random random;
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const double base = std::exp(random.between(-15, 15));
    const double exponent = random.between(-20, 20);
    const auto expected =
        std::pow(static_cast<long double>(base), static_cast<long double>(exponent));
    worst = std::max(worst, ulps(numerics::pow(base, exponent), expected));
  }
  MESSAGE("worst error of pow: " << worst << " ULP");
  CHECK(worst < 4);
  CHECK(numerics::pow(2, 10) == 1024);
  CHECK(numerics::pow(7, 0) == 1);
  CHECK(numerics::pow(1, kInfinity) == 1);
  CHECK(numerics::pow(2, kInfinity) == kInfinity);
  CHECK(numerics::pow(2, -kInfinity) == 0);
  CHECK(numerics::pow(0.5, kInfinity) == 0);
  CHECK(numerics::pow(0, 2) == 0);
  CHECK(numerics::pow(0, -2) == kInfinity);
  CHECK(numerics::pow(10, 400) == kInfinity);
  CHECK(std::isnan(numerics::pow(-2, 2)));  // only positive bases are promised
}

TEST_CASE("given angles up to 2^26, when sine and cosine are taken, then they are within 1e-15") {
  Random random;
  double worst = 0;
  const auto look = [&](double x) {
    const auto got = numerics::sincos(x);
    const auto wide = static_cast<long double>(x);
    worst = std::max({worst, static_cast<double>(std::fabs(got.sin - std::sin(wide))),
                      static_cast<double>(std::fabs(got.cos - std::cos(wide)))});
  };
  for (int i = 0; i < 200000; ++i) look(random.between(-67108864.0, 67108864.0));
  for (int i = 0; i < 20000; ++i) look(random.between(-8, 8));
  for (int n = -4000; n <= 4000; ++n) look(n * 1.5707963267948966);  // next to the zeros
  for (const double position : {1048576.0, 16777219.0}) look(position);
  MESSAGE("worst error of sine and cosine: " << worst);
  CHECK(worst < 1e-15);
  CHECK(numerics::sincos(0).sin == 0);
  CHECK(numerics::sincos(0).cos == 1);
  CHECK(std::isnan(numerics::sincos(kInfinity).sin));
}
