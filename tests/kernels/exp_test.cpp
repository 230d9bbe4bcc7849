#include "cpu_kernels/scalar/definitions.h"
#include "tests/kernels/isas.h"

using namespace kvasir::kernels;        // NOLINT
using namespace kvasir::kernels::test;  // NOLINT

namespace {

double ulps(float got, double want) {
  int exponent;
  std::frexp(want, &exponent);
  return std::abs(static_cast<double>(got) - want) / std::ldexp(1.0, std::max(exponent, -125) - 24);
}

/// Every `stride`th bit pattern of the floats between two of one sign, small magnitude first.
template <class Use>
void sweep(float from, float to, uint32_t stride, const Use& use) {
  for (uint32_t bits = bits_of(from); bits <= bits_of(to); bits += stride) use(from_bits(bits));
}

/// Both signs, every exponent, subnormals, infinities, NaN with payloads.
std::vector<float> all_kinds_of_floats() {
  std::vector<float> out;
  for (uint64_t bits = 0; bits <= 0xFFFFFFFFULL; bits += 4099)
    out.push_back(from_bits(static_cast<uint32_t>(bits)));
  for (const float x :
       {-87.3F, 88.7228F, 0.625F, 0.3125F, -0.625F, 0.0F, -0.0F, INFINITY, -INFINITY}) {
    out.push_back(x);
    out.push_back(std::nextafter(x, -INFINITY));
    out.push_back(std::nextafter(x, INFINITY));
  }
  // NaN whose payload would shift into the exponent.
  for (const uint32_t bits : {0x7FC001FFU, 0xFFC00101U, 0x7F800001U, 0xFFFFFFFFU})
    out.push_back(from_bits(bits));
  return out;
}

}  // namespace

TEST_CASE("given the whole range, when exp is taken, then it is within 1 ULP of the true value") {
  double worst = 0;
  float at = 0;
  const auto measure = [&](float x) {
    const double error = ulps(scalar::exp(x), std::exp(static_cast<double>(x)));
    if (error > worst) {
      worst = error;
      at = x;
    }
  };
  sweep(1e-9F, 88.7228F, 211, measure);
  sweep(-1e-9F, -87.3F, 211, measure);
  MESSAGE("worst error of exp: " << worst << " ULP at " << at);
  CHECK(worst < 1.0);
}

TEST_CASE("given the borders of the range, when exp is taken, then it is 0, infinite or NaN") {
  CHECK(scalar::exp(0.0F) == 1.0F);
  CHECK(scalar::exp(-0.0F) == 1.0F);
  CHECK(scalar::exp(1e-45F) == 1.0F);
  CHECK(scalar::exp(-INFINITY) == 0.0F);
  CHECK(scalar::exp(-1000.0F) == 0.0F);
  CHECK(scalar::exp(-3e38F) == 0.0F);
  CHECK(scalar::exp(INFINITY) == INFINITY);
  CHECK(scalar::exp(89.0F) == INFINITY);
  CHECK(scalar::exp(3e38F) == INFINITY);
  for (const uint32_t bits : {0x7FC00000U, 0x7FC001FFU, 0xFFC00101U, 0x7F800001U, 0xFFFFFFFFU})
    CHECK(std::isnan(scalar::exp(from_bits(bits))));
}

TEST_CASE(
    "given the whole range, when tanh is taken, then it is within 1.5 ULP of the true value") {
  double worst = 0;
  float at = 0;
  const auto measure = [&](float x) {
    const double error = ulps(scalar::tanh(x), std::tanh(static_cast<double>(x)));
    if (error > worst) {
      worst = error;
      at = x;
    }
  };
  sweep(1e-9F, 30.0F, 211, measure);
  sweep(-1e-9F, -30.0F, 211, measure);
  MESSAGE("worst error of tanh: " << worst << " ULP at " << at);
  CHECK(worst < 1.5);
  CHECK(scalar::tanh(INFINITY) == 1.0F);
  CHECK(scalar::tanh(-INFINITY) == -1.0F);
  CHECK(std::isnan(scalar::tanh(std::nanf(""))));
}

TEST_CASE("given every kind of float, when tables use exp and tanh, then they equal scalar") {
  const auto x = all_kinds_of_floats();
  const auto n = static_cast<int64_t>(x.size());
  const std::vector<float> ones(x.size(), 1.0F);
  std::vector<float> expected(x.size()), actual(x.size());
  scalar_kernels().swiglu(x.data(), ones.data(), expected.data(), n);
  std::vector<float> expected_gelu(x.size());
  scalar_kernels().geglu(x.data(), ones.data(), expected_gelu.data(), n);
  // Softmax in rows of two (x, 0): its exponents are x and 0, or 0 and -x.
  std::vector<float> expected_pairs, actual_pairs;
  const auto pairs = [&](const KernelTable& table, std::vector<float>& out) {
    out.assign(2 * x.size(), 0.0F);
    for (size_t i = 0; i < x.size(); ++i) {
      out[2 * i] = x[i];
      table.softmax(out.data() + 2 * i, 2);
    }
  };
  pairs(scalar_kernels(), expected_pairs);
  for (const auto* table : vector_tables()) {
    table->swiglu(x.data(), ones.data(), actual.data(), n);
    check_same(expected, actual, table->name, "swiglu of every kind of float");
    table->geglu(x.data(), ones.data(), actual.data(), n);
    check_same(expected_gelu, actual, table->name, "geglu of every kind of float");
    pairs(*table, actual_pairs);
    check_same(expected_pairs, actual_pairs, table->name, "softmax of every kind of float");
  }
  MESSAGE("compared " << n << " floats on " << vector_tables().size() << " tables");
}
