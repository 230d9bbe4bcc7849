// The vocabulary's floats: 16 virtual lanes, whatever the width of a register.
//
// Included by files compiled for one instruction set: everything is a template over the vocabulary's
// architecture tag and always inlined, so no instruction can leak into the rest of the program.
#pragma once

#include <xsimd/xsimd.hpp>

namespace kvasir::kernels::simd {

#define KVASIR_INLINE [[gnu::always_inline]] static inline

/// What the codes of a line may be: unsigned of so many bits, or signed bytes.
enum class Code { u4, u5, u6, s8 };

/// 16 floats in 16 / Batch::size registers. `Isa::fused` is the one multiply-add; xsimd 8.1 has no
/// fused one for AVX-512. `Isa::quotient` is the one division; xsimd's `/` is a reciprocal estimate
/// with two Newton steps on NEON, up to an ULP off: softmax of two numbers was already not scalar's.
template <class Isa>
struct Floats {
  using Batch = xsimd::batch<float, typename Isa::Arch>;
  static constexpr int kWidth = static_cast<int>(Batch::size);
  static constexpr int kRegisters = 16 / kWidth;
  Batch r[kRegisters];

  /// f(register, register, ...) on every register.
  template <class F, class... Others>
  KVASIR_INLINE Floats map(F f, const Floats& first, const Others&... others) {
    Floats out;
    for (int i = 0; i < kRegisters; ++i) out.r[i] = f(first.r[i], others.r[i]...);
    return out;
  }

  KVASIR_INLINE Floats broadcast(float x) {
    Floats out;
    const Batch one(x);
    for (int i = 0; i < kRegisters; ++i) out.r[i] = one;
    return out;
  }
  KVASIR_INLINE Floats load(const float* p) {
    Floats out;
    for (int i = 0; i < kRegisters; ++i) out.r[i] = Batch::load_unaligned(p + i * kWidth);
    return out;
  }
  KVASIR_INLINE void store(float* p, const Floats& x) {
    for (int i = 0; i < kRegisters; ++i) x.r[i].store_unaligned(p + i * kWidth);
  }
  /// The first n (< 16) floats at p, the other lanes 0; nothing past them is read.
  KVASIR_INLINE Floats load_first(const float* p, int64_t n) {
    float buffer[16] = {};
    for (int64_t i = 0; i < n; ++i) buffer[i] = p[i];
    return load(buffer);
  }
  KVASIR_INLINE void store_first(float* p, const Floats& x, int64_t n) {
    float buffer[16];
    store(buffer, x);
    for (int64_t i = 0; i < n; ++i) p[i] = buffer[i];
  }

  KVASIR_INLINE Floats add(const Floats& a, const Floats& b) {
    return map([](const Batch& x, const Batch& y) { return Batch(x + y); }, a, b);
  }
  KVASIR_INLINE Floats subtract(const Floats& a, const Floats& b) {
    return map([](const Batch& x, const Batch& y) { return Batch(x - y); }, a, b);
  }
  KVASIR_INLINE Floats multiply(const Floats& a, const Floats& b) {
    return map([](const Batch& x, const Batch& y) { return Batch(x * y); }, a, b);
  }
  KVASIR_INLINE Floats divide(const Floats& a, const Floats& b) {
    return map([](const Batch& x, const Batch& y) { return Isa::quotient(x, y); }, a, b);
  }
  /// a * b + c, rounded once.
  KVASIR_INLINE Floats fma(const Floats& a, const Floats& b, const Floats& c) {
    return map([](const Batch& x, const Batch& y, const Batch& z) { return Isa::fused(x, y, z); },
               a, b, c);
  }
  /// a > b ? a : b; b when either is NaN.
  KVASIR_INLINE Floats larger(const Floats& a, const Floats& b) {
    return map([](const Batch& x, const Batch& y) { return Isa::larger(x, y); }, a, b);
  }
  /// a < b ? a : b; b when either is NaN.
  KVASIR_INLINE Floats smaller(const Floats& a, const Floats& b) {
    return map([](const Batch& x, const Batch& y) { return Isa::smaller(x, y); }, a, b);
  }
  /// a < b ? x : y by lane; false when NaN.
  KVASIR_INLINE Floats select_less(const Floats& a, const Floats& b, const Floats& x,
                                   const Floats& y) {
    return map([](const Batch& p, const Batch& q, const Batch& t,
                  const Batch& f) { return Batch(xsimd::select(p < q, t, f)); },
               a, b, x, y);
  }
  /// x where it is NaN, else y. An operation of each set: xsimd 8.1's != is the ordered comparison on
  /// x86, false for NaN, and lost every NaN whose low bits were not zero.
  KVASIR_INLINE Floats keep_nan(const Floats& x, const Floats& y) {
    return map([](const Batch& p, const Batch& q) { return Isa::keep_nan(p, q); }, x, y);
  }
  /// bits(y) + (bits(n) << 23): y times two to the integer in n's low bits.
  KVASIR_INLINE Floats scale_by_power(const Floats& y, const Floats& n) {
    return map([](const Batch& p, const Batch& q) { return Isa::scale_by_power(p, q); }, y, n);
  }
  KVASIR_INLINE Floats magnitude(const Floats& x) {
    return map([](const Batch& p) { return Isa::magnitude(p); }, x);
  }
  /// The magnitude of x with the sign of s; x must not be negative.
  KVASIR_INLINE Floats with_sign_of(const Floats& x, const Floats& s) {
    return map([](const Batch& p, const Batch& q) { return Isa::with_sign_of(p, q); }, x, s);
  }

  /// Lanes at distance 8 are added, then 4, 2, 1.
  KVASIR_INLINE float sum(const Floats& x) {
    float lanes[16];
    if constexpr (kRegisters >= 2) {
      Floats folded = x;
      for (int i = 0; i < kRegisters / 2; ++i)
        folded.r[i] = Batch(folded.r[i] + folded.r[i + kRegisters / 2]);
      store(lanes, folded);
    } else {
      store(lanes, x);
      for (int i = 0; i < 8; ++i) lanes[i] = lanes[i] + lanes[i + 8];
    }
    for (int i = 0; i < 4; ++i) lanes[i] = lanes[i] + lanes[i + 4];
    lanes[0] = lanes[0] + lanes[2];
    lanes[1] = lanes[1] + lanes[3];
    return lanes[0] + lanes[1];
  }
  /// The largest lane; no lane may be NaN, or all are. Of zeros with both signs, any.
  KVASIR_INLINE float largest(const Floats& x) {
    Floats folded = x;
    for (int n = kRegisters / 2; n > 0; n /= 2) {
      for (int i = 0; i < n; ++i) folded.r[i] = Isa::larger(folded.r[i], folded.r[i + n]);
    }
    return Isa::largest_lane(folded.r[0]);
  }
};

}  // namespace kvasir::kernels::simd
