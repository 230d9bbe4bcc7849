// Dense products by a library, for --math fast: quicker on some machines, not the same bits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cpu_kernels/kernels.h"

namespace kvasir {

/// Fewest rows for which the library is tried: below that our kernels stream the weights once too.
inline constexpr int64_t kFastRows = 16;

/// One thread's products by oneDNN, each on that thread alone. Not thread-safe: one a thread.
class FastDense {
 public:
  virtual ~FastDense() = default;

  /// Computes whole panels of the task, as kernels::KernelTable::matmul would up to rounding.
  /// False, with nothing written, when the library cannot (type, shape, CPU).
  virtual bool multiply(const kernels::MatmulTask& task) = 0;

  /// Null when this build has no library, or its threads are not OpenMP's.
  static std::unique_ptr<FastDense> create();
  /// "oneDNN 2.6.3"; empty without one.
  static std::string_view library();
};

/// Which shapes go to the library: measured once on the calling thread, then fixed, so that a run
/// repeats. Shapes are (format, rows of the matrix, columns).
class FastChoices {
 public:
  struct Choice {
    kernels::WeightFormat format;
    int64_t n_rows;
    int64_t n_columns;
    bool use_library;
    double ours_us;     ///< best of 3, one thread, `batch_rows` rows
    double library_us;  ///< 0: not supported
  };

  /// Times both on each distinct dense matrix with a batch of `batch_rows` rows.
  static FastChoices measure(const std::vector<const kernels::PackedMatrix*>& matrices,
                             const kernels::KernelTable& kernels, int64_t batch_rows);

  bool use_library(const kernels::PackedMatrix& matrix, int64_t batch_rows) const;
  /// A line for each shape: "f32 1536 x 576: oneDNN (812 us, ours 901 us)".
  std::vector<std::string> describe() const;

 private:
  std::vector<Choice> choices_;
};

}  // namespace kvasir
