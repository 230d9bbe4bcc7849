#include "cpu_kernels/scalar/half.h"

#include <cstring>

namespace kvasir::kernels::scalar {

float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16;
  uint32_t exponent = (half >> 10) & 31U;
  uint32_t mantissa = half & 0x3FFU;
  uint32_t bits;
  if (exponent == 31) {  // infinity, or NaN made quiet as the hardware does
    bits = sign | 0x7F800000U | (mantissa << 13) | (mantissa != 0 ? 0x400000U : 0U);
  } else if (exponent == 0 && mantissa == 0) {
    bits = sign;
  } else {
    if (exponent == 0) {  // subnormal: normalise, 2^-24 * mantissa
      exponent = 1;
      while ((mantissa & 0x400U) == 0) {
        mantissa <<= 1;
        --exponent;
      }
      mantissa &= 0x3FFU;
    }
    bits = sign | ((exponent + 112) << 23) | (mantissa << 13);
  }
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

uint16_t float_to_half(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) {
    return static_cast<uint16_t>(sign | 0x7E00U | ((magnitude >> 13) & 0x3FFU));
  }
  // 65520 is halfway between the largest half, 65504, and what would be the next one.
  if (magnitude >= 0x477FF000U) return static_cast<uint16_t>(sign | 0x7C00U);
  if (magnitude < 0x33000001U) return sign;  // at most 2^-25: half the smallest subnormal
  const auto exponent = static_cast<int32_t>(magnitude >> 23) - 127;
  uint32_t mantissa = (magnitude & 0x7FFFFFU) | 0x800000U;
  const int32_t shift = exponent < -14 ? 13 + (-14 - exponent) : 13;
  const uint32_t rest = mantissa & ((1U << shift) - 1);
  const uint32_t halfway = 1U << (shift - 1);
  mantissa >>= shift;
  if (rest > halfway || (rest == halfway && (mantissa & 1U) != 0)) ++mantissa;
  // A carry out of the mantissa lands in the exponent, which is what it means.
  const uint32_t biased = exponent < -14 ? 0U : static_cast<uint32_t>(exponent + 14) << 10;
  return static_cast<uint16_t>(sign | (biased + mantissa));
}

}  // namespace kvasir::kernels::scalar
