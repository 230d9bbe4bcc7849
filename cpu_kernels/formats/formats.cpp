#include "cpu_kernels/formats/tables.h"

namespace kvasir::kernels::formats {

const Format* find_format(WeightFormat format) {
  switch (format) {
    case WeightFormat::q4_0:
      return &kQ4_0;
    case WeightFormat::q4_1:
      return &kQ4_1;
    case WeightFormat::q5_0:
      return &kQ5_0;
    case WeightFormat::q5_1:
      return &kQ5_1;
    case WeightFormat::q8_0:
      return &kQ8_0;
    case WeightFormat::iq4_nl:
      return &kIq4Nl;
    case WeightFormat::mxfp4:
      return &kMxfp4;
    case WeightFormat::q2_k:
      return &kQ2K;
    case WeightFormat::q3_k:
      return &kQ3K;
    case WeightFormat::q4_k:
      return &kQ4K;
    case WeightFormat::q5_k:
      return &kQ5K;
    case WeightFormat::q6_k:
      return &kQ6K;
    case WeightFormat::iq4_xs:
      return &kIq4Xs;
    case WeightFormat::iq2_xxs:
      return &kIq2Xxs;
    case WeightFormat::iq2_xs:
      return &kIq2Xs;
    case WeightFormat::iq2_s:
      return &kIq2S;
    case WeightFormat::iq3_xxs:
      return &kIq3Xxs;
    case WeightFormat::iq3_s:
      return &kIq3S;
    case WeightFormat::iq1_s:
      return &kIq1S;
    case WeightFormat::iq1_m:
      return &kIq1M;
    case WeightFormat::tq1_0:
      return &kTq1_0;
    case WeightFormat::tq2_0:
      return &kTq2_0;
    case WeightFormat::f32:
    case WeightFormat::f16:
    case WeightFormat::bf16:
    case WeightFormat::count:
      break;
  }
  return nullptr;
}

}  // namespace kvasir::kernels::formats
