// Ours or the library's: measured for each shape.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/base/aligned_buffer.h"
#include "models/fast_dense.h"

namespace kvasir {
namespace {

using kernels::PackedMatrix;
using kernels::WeightFormat;

bool is_dense(const PackedMatrix& matrix) {
  return matrix.format == WeightFormat::f32 || matrix.format == WeightFormat::f16;
}

bool same_shape(const FastChoices::Choice& choice, const PackedMatrix& matrix) {
  return choice.format == matrix.format && choice.n_rows == matrix.n_rows &&
         choice.n_columns == matrix.n_columns;
}

/// Best of 3 in microseconds; 0 when `work` says that it could not.
template <class Work>
double time_us(const Work& work) {
  double best = 0;
  for (int i = 0; i < 4; ++i) {  // the first one warms up
    const auto start = std::chrono::steady_clock::now();
    if (!work()) return 0;
    const double us =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
    if (i == 1 || (i > 1 && us < best)) best = us;
  }
  return best;
}

}  // namespace

FastChoices FastChoices::measure(const std::vector<const PackedMatrix*>& matrices,
                                 const kernels::KernelTable& kernels, int64_t batch_rows) {
  FastChoices result;
  const auto library = FastDense::create();
  if (library == nullptr || batch_rows < kFastRows) return result;
  for (const PackedMatrix* matrix : matrices) {
    const auto known = std::any_of(result.choices_.begin(), result.choices_.end(),
                                   [&](const Choice& c) { return same_shape(c, *matrix); });
    if (!is_dense(*matrix) || known) continue;
    // At most 16 panels, as a thread's piece of a large matrix has them.
    const int64_t panels = std::min<int64_t>(16, matrix->n_rows / kernels::kPanelRows);
    if (panels == 0) continue;
    auto input = AlignedBuffer::allocate(static_cast<size_t>(batch_rows * matrix->n_columns) *
                                         sizeof(float));
    auto output = AlignedBuffer::allocate(
        static_cast<size_t>(batch_rows * panels * kernels::kPanelRows) * sizeof(float));
    auto scratch = AlignedBuffer::allocate(kernels::kMatmulScratchBytes);
    if (!input || !output || !scratch) continue;  // no memory to measure with: ours
    std::fill_n(input->as<float>(), batch_rows * matrix->n_columns, 0.5F);
    kernels::Activations x{};
    x.n_rows = batch_rows;
    x.n_columns = matrix->n_columns;
    x.values = input->as<float>();
    x.values_stride = matrix->n_columns;
    const kernels::MatmulTask task = {.weights = matrix,
                                      .input = &x,
                                      .output = output->as<float>(),
                                      .output_stride = panels * kernels::kPanelRows,
                                      .first_panel = 0,
                                      .end_panel = panels,
                                      .add_to_output = false,
                                      .scratch = scratch->data()};
    Choice choice = {matrix->format, matrix->n_rows, matrix->n_columns, false, 0, 0};
    choice.ours_us = time_us([&] {
      kernels.matmul[static_cast<size_t>(matrix->format)](task);
      return true;
    });
    choice.library_us = time_us([&] { return library->multiply(task); });
    choice.use_library = choice.library_us > 0 && choice.library_us < choice.ours_us;
    result.choices_.push_back(choice);
  }
  return result;
}

bool FastChoices::use_library(const PackedMatrix& matrix, int64_t batch_rows) const {
  if (batch_rows < kFastRows) return false;
  const auto found = std::find_if(choices_.begin(), choices_.end(),
                                  [&](const Choice& c) { return same_shape(c, matrix); });
  return found != choices_.end() && found->use_library;
}

std::vector<std::string> FastChoices::describe() const {
  std::vector<std::string> lines;
  for (const auto& c : choices_) {
    const auto* format = c.format == WeightFormat::f32 ? "f32" : "f16";
    const auto library =
        c.library_us > 0 ? fmt::format("{:.0f} us", c.library_us) : "not supported";
    lines.push_back(fmt::format("{} {} x {}: {} ({} {}, ours {:.0f} us)", format, c.n_rows,
                                c.n_columns, c.use_library ? "library" : "ours",
                                FastDense::library(), library, c.ours_us));
  }
  return lines;
}

}  // namespace kvasir
