#include "tests/kernels/isas.h"

#include <cfloat>

#include "cpu_kernels/scalar/definitions.h"

using namespace kvasir::kernels;        // NOLINT
using namespace kvasir::kernels::test;  // NOLINT

namespace {

float nan_value() { return std::nanf(""); }

/// Ordinary values with every special one among them.
std::vector<float> nasty_floats(size_t n, unsigned seed) {
  auto v = random_floats(n, seed, 100.0F);
  const float specials[] = {0.0F,    -0.0F,  1e-45F,    -1e-45F,   FLT_MIN, FLT_MAX, -FLT_MAX,
                            -INFINITY, INFINITY, nan_value(), 88.72F,  -87.31F, 88.73F};
  for (size_t i = 0; i < n; i += 5) v[i] = specials[(i / 5 + seed) % std::size(specials)];
  return v;
}

template <class Call>
void compare_tables(size_t n, const std::string& what, const Call& call) {
  Guarded<float> expected(n, 1);
  call(scalar_kernels(), expected.data());
  for (const auto* table : vector_tables()) {
    Guarded<float> actual(n, 1);
    call(*table, actual.data());
    check_same(expected.values(), actual.values(), table->name, what + " n " + std::to_string(n));
    REQUIRE(actual.untouched_outside());
  }
}

}  // namespace

TEST_CASE("given rows of every length, when normalised, gated, added, then tables equal scalar") {
  for (size_t n = 1; n <= 70; ++n) {
    const auto s = static_cast<unsigned>(n);
    for (const auto& x : {random_floats(n, s), nasty_floats(n, s)}) {
      const auto w = random_floats(n, s + 1);
      compare_tables(n, "rms_norm", [&](const KernelTable& t, float* y) {
        t.rms_norm(x.data(), w.data(), 1e-5F, y, static_cast<int64_t>(n));
      });
      compare_tables(n, "swiglu", [&](const KernelTable& t, float* y) {
        t.swiglu(x.data(), w.data(), y, static_cast<int64_t>(n));
      });
      compare_tables(n, "geglu", [&](const KernelTable& t, float* y) {
        t.geglu(x.data(), w.data(), y, static_cast<int64_t>(n));
      });
      compare_tables(n, "add", [&](const KernelTable& t, float* y) {
        t.add(x.data(), w.data(), y, static_cast<int64_t>(n));
      });
    }
    const auto x = random_floats(n, s, 20.0F);
    compare_tables(n, "softmax", [&](const KernelTable& t, float* y) {
      std::copy(x.begin(), x.end(), y);
      t.softmax(y, static_cast<int64_t>(n));
    });
  }
}

TEST_CASE("given scalar formulas, when compared with doubles, then they agree") {
  const size_t n = 576;
  const auto x = random_floats(n, 3, 4.0F);
  const auto w = random_floats(n, 4);
  std::vector<float> y(n);
  scalar::rms_norm(x.data(), w.data(), 1e-5F, y.data(), n);
  double squares = 0;
  for (const float v : x) squares += static_cast<double>(v) * v;
  const double r = 1 / std::sqrt(squares / n + 1e-5);
  for (size_t i = 0; i < n; ++i) CHECK(y[i] == doctest::Approx(x[i] * r * w[i]).epsilon(2e-6));
  scalar::swiglu(x.data(), w.data(), y.data(), n);
  for (size_t i = 0; i < n; ++i)
    CHECK(y[i] == doctest::Approx(x[i] / (1 + std::exp(-static_cast<double>(x[i]))) * w[i]).epsilon(1e-6));
  scalar::geglu(x.data(), w.data(), y.data(), n);
  for (size_t i = 0; i < n; ++i) {
    const double g = x[i];
    const double u = 0.79788456080286535588 * (g + 0.044715 * g * g * g);
    const double expected = 0.5 * g * (1 + std::tanh(u)) * w[i];
    // 1 + tanh cancels where the gate is very negative: half an ULP of tanh near 1 is 3e-8, and the
    // errors of u (2 roundings, slope at most 1) and of tanh (1.5 ULP) come to 3 of those.
    CHECK(std::abs(y[i] - expected) <= 1e-7 * std::abs(0.5 * g * w[i]) + 3e-7 * std::abs(expected));
  }
}

TEST_CASE("given gates at the ends of the range, when activated, then the limits are reached") {
  const float gates[] = {30.0F, 3e38F, INFINITY, 0.0F, -0.0F, -30.0F, -3e38F, nan_value()};
  std::vector<float> y(std::size(gates));
  const std::vector<float> ones(std::size(gates), 1.0F);
  scalar::geglu(gates, ones.data(), y.data(), static_cast<int64_t>(y.size()));
  for (size_t i = 0; i < 4; ++i) CHECK(y[i] == gates[i]);
  for (size_t i = 4; i < 7; ++i) CHECK(y[i] == 0.0F);
  CHECK(std::isnan(y[7]));
}

TEST_CASE("given groups of 32, when quantised, then codes follow the formula and tables agree") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const size_t n = 32 * (seed % 5 + 1);
    auto x = seed % 3 == 2 ? nasty_floats(n, seed) : random_floats(n, seed, 5.0F);
    if (seed == 7) std::fill(x.begin(), x.end(), 0.0F);
    std::vector<int8_t> codes(n);
    std::vector<ActivationGroup> groups(n / 32);
    scalar_kernels().quantize(x.data(), static_cast<int64_t>(n), codes.data(), groups.data());
    for (size_t g = 0; g < n / 32; ++g) {
      float absmax = 0;
      bool finite = true;
      for (size_t i = g * 32; i < g * 32 + 32; ++i) {
        finite = finite && std::isfinite(x[i]);
        absmax = std::max(absmax, std::abs(x[i]));
      }
      if (!finite) {
        CHECK_FALSE(std::isfinite(groups[g].scale));
        continue;
      }
      CHECK(groups[g].scale == absmax / 127.0F);
      int32_t sum = 0;
      for (size_t i = g * 32; i < g * 32 + 32; ++i) {
        sum += codes[i];
        CHECK(codes[i] >= -127);
        CHECK(std::abs(static_cast<double>(codes[i]) * groups[g].scale - x[i]) <=
              0.5001 * static_cast<double>(groups[g].scale));
      }
      CHECK(groups[g].sum == sum);
      CHECK(groups[g].scaled_sum == groups[g].scale * static_cast<float>(sum));
    }
    for (const auto* table : vector_tables()) {
      Guarded<int8_t> other(n, 3);
      Guarded<ActivationGroup> other_groups(n / 32);
      table->quantize(x.data(), static_cast<int64_t>(n), other.data(), other_groups.data());
      CHECK(other.values() == codes);
      CHECK(other.untouched_outside());
      for (size_t g = 0; g < n / 32; ++g) {
        CHECK(same(other_groups[g].scale, groups[g].scale));
        CHECK(same(other_groups[g].scaled_sum, groups[g].scaled_sum));
        CHECK(other_groups[g].sum == groups[g].sum);
      }
    }
  }
}

TEST_CASE("given a group of tiny values, when quantised, then zeros stay zero and nothing is large") {
  // 127 / absmax overflows below 127 / FLT_MAX = 3.7e-37; 0 * infinity must not become a code.
  std::vector<const KernelTable*> tables = vector_tables();
  tables.insert(tables.begin(), &scalar_kernels());
  for (const float tiny : {1e-45F, 1e-40F, FLT_MIN, 1e-37F, 3.7e-37F, 3.8e-37F, 7e-37F, 8e-37F, 1e-30F}) {
    std::vector<float> x(32, 0.0F);
    x[3] = tiny;
    x[20] = -tiny / 2;
    std::vector<int8_t> expected;
    for (const auto* table : tables) {
      std::vector<int8_t> codes(32);
      ActivationGroup group;
      table->quantize(x.data(), 32, codes.data(), &group);
      for (size_t i = 0; i < 32; ++i) {
        if (x[i] == 0.0F) CHECK(codes[i] == 0);
        // Below 2^-120 = 7.5e-37 a group may count as zeros; above, half a step and scale's rounding.
        const double bound = tiny < 7.6e-37F ? 7.6e-37 : 0.501 * static_cast<double>(group.scale);
        CHECK(std::abs(static_cast<double>(codes[i]) * group.scale - x[i]) <= bound);
      }
      if (expected.empty()) expected = codes;
      CHECK(codes == expected);
    }
  }
}

TEST_CASE("given both pair layouts, when rotated, then tables equal scalar and lengths are kept") {
  for (const RopePairs pairs : {RopePairs::interleaved, RopePairs::half_split}) {
    for (const int64_t rotary : {2, 8, 24, 40, 64, 70, 128}) {
      const int64_t stride = rotary + 11;
      const auto angles = random_floats(static_cast<size_t>(rotary / 2), 5, 3.0F);
      std::vector<float> cos, sin;
      for (const float a : angles) {
        cos.push_back(std::cos(a));
        sin.push_back(std::sin(a));
      }
      const auto x = random_floats(static_cast<size_t>(3 * stride), 6);
      compare_tables(x.size(), "rope", [&](const KernelTable& t, float* y) {
        std::copy(x.begin(), x.end(), y);
        t.rope(y, 3, stride, rotary, cos.data(), sin.data(), pairs);
      });
      auto y = x;
      scalar::rope(y.data(), 3, stride, rotary, cos.data(), sin.data(), pairs);
      const size_t a = 0, b = pairs == RopePairs::interleaved ? 1 : static_cast<size_t>(rotary / 2);
      CHECK(y[a] == doctest::Approx(x[a] * cos[0] - x[b] * sin[0]).epsilon(1e-5));
      CHECK(y[b] == doctest::Approx(x[b] * cos[0] + x[a] * sin[0]).epsilon(1e-5));
      for (int64_t i = rotary; i < stride; ++i)
        CHECK(y[static_cast<size_t>(i)] == x[static_cast<size_t>(i)]);
    }
  }
}

TEST_CASE("given ties, when the largest is asked for, then it is the lowest index") {
  std::vector<const KernelTable*> tables = vector_tables();
  tables.push_back(&scalar_kernels());
  for (const auto* table : tables) {
    for (int64_t n = 1; n < 80; ++n) {
      for (int64_t at = 0; at < n; at += 7) {
        auto x = random_floats(static_cast<size_t>(n), static_cast<unsigned>(n));
        x[static_cast<size_t>(at)] = 5;
        x[static_cast<size_t>(n - 1)] = 5;
        CHECK(table->argmax(x.data(), n) == at);
      }
    }
    const float zeros[] = {-1.0F, -0.0F, 0.0F};
    CHECK(table->argmax(zeros, 3) == 1);
  }
}

TEST_CASE("given one value that is not finite anywhere, when asked, then it is found") {
  std::vector<const KernelTable*> tables = vector_tables();
  tables.push_back(&scalar_kernels());
  for (const auto* table : tables) {
    for (int64_t n = 1; n < 50; ++n) {
      auto x = random_floats(static_cast<size_t>(n), 1, 3e38F);
      CHECK(table->all_finite(x.data(), n));
      for (const float bad : {nan_value(), INFINITY, -INFINITY}) {
        for (int64_t i = 0; i < n; i += 3) {
          auto y = x;
          y[static_cast<size_t>(i)] = bad;
          CHECK_FALSE(table->all_finite(y.data(), n));
        }
      }
    }
  }
}
