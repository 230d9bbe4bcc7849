// The scalar kernels: what every other table must equal bit for bit.
#pragma once

#include "cpu_kernels/kernels.h"

namespace kvasir::kernels::scalar {

float exp(float x);
float tanh(float x);

void matmul_f32(const MatmulTask& task);
void matmul_f16(const MatmulTask& task);
void matmul_bf16(const MatmulTask& task);
void matmul_quantized(const MatmulTask& task);

void quantize(const float* x, int64_t n, int8_t* codes, ActivationGroup* groups);
void quantize_wide(const float* x, int64_t n, int8_t* codes, WideActivationGroup* groups);
void rms_norm(const float* x, const float* weight, float epsilon, float* y, int64_t n);
void swiglu(const float* gate, const float* up, float* y, int64_t n);
void geglu(const float* gate, const float* up, float* y, int64_t n);
void add(const float* a, const float* b, float* y, int64_t n);
void rope(float* x, int64_t n_heads, int64_t head_stride, int64_t rotary_dim, const float* cos,
          const float* sin, RopePairs pairs);
void store_key_f32(const float* key, int64_t head_dim, int64_t slot, std::byte* keys);
void store_key_f16(const float* key, int64_t head_dim, int64_t slot, std::byte* keys);
void store_value_f32(const float* value, int64_t head_dim, int64_t slot, std::byte* values);
void store_value_f16(const float* value, int64_t head_dim, int64_t slot, std::byte* values);
void attention(const AttentionTask& task);
void attention_merge(float* running, const float* next, int64_t head_dim);
void attention_finish(const float* state, int64_t head_dim, float* output);
void softmax(float* x, int64_t n);
int64_t argmax(const float* x, int64_t n);
bool all_finite(const float* x, int64_t n);
int64_t multiply_add_peak(int64_t rounds);

}  // namespace kvasir::kernels::scalar
