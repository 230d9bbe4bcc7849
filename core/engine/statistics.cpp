#include "core/engine/statistics.h"

namespace kvasir {

void ForwardStatistics::add(const ForwardStatistics& other) {
  steps += other.steps;
  rows += other.rows;
  weight_bytes += other.weight_bytes;
  kv_bytes += other.kv_bytes;
  weight_multiply_adds += other.weight_multiply_adds;
  attention_multiply_adds += other.attention_multiply_adds;
  for (size_t i = 0; i < matmul_calls.size(); ++i) matmul_calls[i] += other.matmul_calls[i];
  library_matmul_calls += other.library_matmul_calls;
  attention_calls += other.attention_calls;
  for (size_t i = 0; i < zone_time.size(); ++i) zone_time[i] += other.zone_time[i];
  for (size_t i = 0; i < matmul_time.size(); ++i) matmul_time[i] += other.matmul_time[i];
  time += other.time;
}

}  // namespace kvasir
