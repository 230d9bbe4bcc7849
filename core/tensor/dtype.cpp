#include "core/tensor/dtype.h"

#include <algorithm>
#include <iterator>

namespace kvasir {
namespace {

// Sizes follow from each format's fields, e.g. Q4_1 = f16 scale + f16 minimum + 32 nibbles = 20.
constexpr DTypeTraits kTraits[] = {
    {DType::f32, "F32", 1, 4},          {DType::f16, "F16", 1, 2},
    {DType::q4_0, "Q4_0", 32, 18},      {DType::q4_1, "Q4_1", 32, 20},
    {DType::q5_0, "Q5_0", 32, 22},      {DType::q5_1, "Q5_1", 32, 24},
    {DType::q8_0, "Q8_0", 32, 34},      {DType::q8_1, "Q8_1", 32, 36},
    {DType::q2_k, "Q2_K", 256, 84},     {DType::q3_k, "Q3_K", 256, 110},
    {DType::q4_k, "Q4_K", 256, 144},    {DType::q5_k, "Q5_K", 256, 176},
    {DType::q6_k, "Q6_K", 256, 210},    {DType::q8_k, "Q8_K", 256, 292},
    {DType::iq2_xxs, "IQ2_XXS", 256, 66}, {DType::iq2_xs, "IQ2_XS", 256, 74},
    {DType::iq3_xxs, "IQ3_XXS", 256, 98}, {DType::iq1_s, "IQ1_S", 256, 50},
    {DType::iq4_nl, "IQ4_NL", 32, 18},  {DType::iq3_s, "IQ3_S", 256, 110},
    {DType::iq2_s, "IQ2_S", 256, 82},   {DType::iq4_xs, "IQ4_XS", 256, 136},
    {DType::i8, "I8", 1, 1},            {DType::i16, "I16", 1, 2},
    {DType::i32, "I32", 1, 4},          {DType::i64, "I64", 1, 8},
    {DType::f64, "F64", 1, 8},          {DType::iq1_m, "IQ1_M", 256, 56},
    {DType::bf16, "BF16", 1, 2},        {DType::tq1_0, "TQ1_0", 256, 54},
    {DType::tq2_0, "TQ2_0", 256, 66},   {DType::mxfp4, "MXFP4", 32, 17},
    {DType::nvfp4, "NVFP4", 64, 36},
};

}  // namespace

std::optional<DTypeTraits> find_dtype(uint32_t gguf_type) {
  const auto* found = std::find_if(std::begin(kTraits), std::end(kTraits), [&](const auto& t) {
    return static_cast<uint32_t>(t.dtype) == gguf_type;
  });
  if (found == std::end(kTraits)) return std::nullopt;
  return *found;
}

DTypeTraits dtype_traits(DType dtype) {
  return find_dtype(static_cast<uint32_t>(dtype)).value_or(DTypeTraits{dtype, "?", 1, 1});
}

}  // namespace kvasir
