#include "cpu_kernels/scalar/half.h"

#include "cpu_kernels/scalar/definitions.h"
#include "tests/kernels/isas.h"

using namespace kvasir::kernels;        // NOLINT
using namespace kvasir::kernels::test;  // NOLINT

namespace {

/// The half nearest to x by IEEE 754: the spacing of halves around x, and a rounding in double,
/// which is exact there. `x` is no NaN.
double nearest_half(float x) {
  if (std::isinf(x)) return x;
  int exponent;
  std::frexp(x, &exponent);  // |x| in [2^(exponent - 1), 2^exponent)
  const double spacing = std::ldexp(1.0, std::max(exponent - 11, -24));
  const double rounded = std::nearbyint(static_cast<double>(x) / spacing) * spacing;
  return std::abs(rounded) > 65504 ? std::copysign(INFINITY, rounded) : rounded;
}

/// Every exponent with many mantissas, and around every half: it, its neighbours among the floats,
/// and the tie above it.
std::vector<float> floats_near_halves() {
  std::vector<float> out;
  for (uint64_t bits = 0; bits <= 0xFFFFFFFFULL; bits += 6007)
    out.push_back(from_bits(static_cast<uint32_t>(bits)));
  for (uint32_t h = 0; h < 0x7C00; h += 1) {
    const float low = scalar::half_to_float(static_cast<uint16_t>(h));
    const float high = h == 0x7BFF ? 65536.0F : scalar::half_to_float(static_cast<uint16_t>(h + 1));
    const float tie = low + (high - low) / 2;
    for (const float x : {low, tie}) {
      for (const float near : {x, std::nextafter(x, INFINITY), std::nextafter(x, -INFINITY)}) {
        out.push_back(near);
        out.push_back(-near);
      }
    }
  }
  return out;
}

}  // namespace

TEST_CASE("given every half, when widened and rounded back, then it is itself; ties go to even") {
  for (uint32_t h = 0; h < 65536; ++h) {
    const auto half = static_cast<uint16_t>(h);
    const float wide = scalar::half_to_float(half);
    const bool is_nan = (half & 0x7C00U) == 0x7C00U && (half & 0x3FFU) != 0;
    CHECK(std::isnan(wide) == is_nan);
    if (!is_nan) {
      REQUIRE(scalar::float_to_half(wide) == half);
      if ((half & 0x7C00U) != 0x7C00U) {
        const int exponent = (half >> 10) & 31;
        const double mantissa = half & 0x3FF;
        const double magnitude =
            exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
        REQUIRE(static_cast<double>(wide) == ((half & 0x8000U) != 0 ? -magnitude : magnitude));
      }
    }
  }
  CHECK(scalar::float_to_half(2049.0F) == scalar::float_to_half(2048.0F));  // tie, to even
  CHECK(scalar::float_to_half(2051.0F) == scalar::float_to_half(2052.0F));
  CHECK(scalar::float_to_half(65519.9F) == 0x7BFF);
  CHECK(scalar::float_to_half(65520.0F) == 0x7C00);
  CHECK(scalar::float_to_half(std::ldexp(1.0F, -25)) == 0);
  CHECK(scalar::float_to_half(std::ldexp(1.5F, -25)) == 1);
}

TEST_CASE(
    "given floats of every kind, when rounded to half, then it is the nearest, ties to even") {
  size_t count = 0;
  for (const float x : floats_near_halves()) {
    const uint16_t half = scalar::float_to_half(x);
    if (std::isnan(x)) {
      REQUIRE((half & 0x7C00U) == 0x7C00U);
      REQUIRE((half & 0x3FFU) != 0);
      continue;
    }
    const auto wide = static_cast<double>(scalar::half_to_float(half));
    if (wide != nearest_half(x) || std::signbit(wide) != std::signbit(x))
      FAIL("float bits " << bits_of(x) << " became half " << half);
    ++count;
  }
  MESSAGE("rounded " << count << " floats");
}

TEST_CASE("given floats of every kind, when tables store halves, then the bits are scalar's") {
  const auto x = floats_near_halves();
  constexpr int64_t kDim = 48;
  for (const auto* table : vector_tables()) {
    for (size_t first = 0; first + kDim <= x.size(); first += kDim) {
      Guarded<uint16_t> expected(kDim), actual(kDim);
      const auto type = static_cast<size_t>(KvType::f16);
      scalar_kernels().store_value[type](x.data() + first, kDim, 0,
                                         reinterpret_cast<std::byte*>(expected.data()));
      table->store_value[type](x.data() + first, kDim, 0,
                               reinterpret_cast<std::byte*>(actual.data()));
      for (size_t i = 0; i < kDim; ++i) {
        const float e = scalar::half_to_float(expected[i]);
        if (!same(e, scalar::half_to_float(actual[i])))
          FAIL(std::string(table->name)
               << ": float bits " << bits_of(x[first + i]) << " became half " << actual[i]
               << ", scalar says " << expected[i]);
      }
    }
  }
}

TEST_CASE("given all 65,536 halves as weights, when multiplied by 1, then tables widen as scalar") {
  std::vector<uint16_t> halves(65536 + 32);
  const size_t shift = (64 - reinterpret_cast<uintptr_t>(halves.data()) % 64) % 64 / 2;
  uint16_t* panels = halves.data() + shift;
  // One column: a panel is 16 halves, 32 bytes used of its 64.
  std::vector<uint16_t> source(65536);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint16_t>(i);
  const float one = 1.0F;
  const Activations input{1, 1, &one, 1, nullptr, 0, nullptr, 0};
  Guarded<std::byte> scratch(kMatmulScratchBytes);
  for (size_t first = 0; first < source.size(); first += 16) {
    std::copy_n(source.begin() + static_cast<long>(first), 16, panels);
    const PackedMatrix weights{WeightFormat::f16, 16, 1, reinterpret_cast<const std::byte*>(panels),
                               packed_panel_bytes(WeightFormat::f16, 1)};
    std::vector<float> expected(16), actual(16);
    for (size_t i = 0; i < 16; ++i) expected[i] = scalar::half_to_float(source[first + i]) + 0.0F;
    std::vector<const KernelTable*> tables = vector_tables();
    tables.push_back(&scalar_kernels());
    for (const auto* table : tables) {
      table->matmul[static_cast<int>(WeightFormat::f16)](
          {&weights, &input, actual.data(), 16, 0, 1, false, scratch.data()});
      check_same(expected, actual, table->name, "halves from " + std::to_string(first));
    }
  }
}
