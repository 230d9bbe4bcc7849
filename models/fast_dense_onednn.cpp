// The only file that knows oneDNN; it compiles with versions 2 and 3.
#include <omp.h>
#include <oneapi/dnnl/dnnl_version.h>

#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#include "models/fast_dense.h"

namespace kvasir {
namespace {

using dnnl::memory;
using kernels::kPanelRows;
using kernels::WeightFormat;

/// A product's shape: a primitive is made for each and kept.
struct Shape {
  WeightFormat format;
  int64_t batch_rows;
  int64_t n_columns;
  int64_t n_panels;
  int64_t input_stride;
  int64_t output_stride;
  bool add;
  auto operator<=>(const Shape&) const = default;
};

/// The library plans and runs for one thread while this lives: the work is shared out by us.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

/// Panels are [n_columns][16]: a batch of n_panels matrices that share the left factor, whose
/// results lie side by side in each row of the output.
class OneDnnDense final : public FastDense {
 public:
  OneDnnDense() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

  bool multiply(const kernels::MatmulTask& task) override {
    const kernels::Activations& x = *task.input;
    const Shape shape = {task.weights->format, x.n_rows,
                         x.n_columns,          task.end_panel - task.first_panel,
                         x.values_stride,      task.output_stride,
                         task.add_to_output};
    const OneThread one;
    try {
      const Product* product = find(shape);
      if (product == nullptr) return false;
      const std::byte* weights =
          task.weights->panels + static_cast<size_t>(task.first_panel) * task.weights->panel_bytes;
      float* output = task.output + task.first_panel * kPanelRows;
      // The library's memory objects take pointers that are not const; it reads these two only.
      const memory source(product->source, engine_, const_cast<float*>(x.values));
      const memory weight(product->weights, engine_, const_cast<std::byte*>(weights));
      const memory result(product->output, engine_, output);
      product->primitive.execute(
          stream_, {{DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DST, result}});
      stream_.wait();
      return true;
    } catch (const dnnl::error&) {
      return false;
    }
  }

 private:
  struct Product {
    memory::desc source, weights, output;
    dnnl::matmul primitive;
  };

  /// Null when the library has none for the shape.
  const Product* find(const Shape& shape) {
    const auto known = products_.find(shape);
    if (known != products_.end()) return known->second.get();
    std::unique_ptr<Product> made;
    try {
      made = make(shape);
    } catch (const dnnl::error&) {
      made = nullptr;  // types this CPU has no code for throw here
    }
    return products_.emplace(shape, std::move(made)).first->second.get();
  }

  std::unique_ptr<Product> make(const Shape& s) {
    const auto type =
        s.format == WeightFormat::f32 ? memory::data_type::f32 : memory::data_type::f16;
    auto product = std::make_unique<Product>();
    product->source = memory::desc({1, s.batch_rows, s.n_columns}, memory::data_type::f32,
                                   memory::dims{s.batch_rows * s.input_stride, s.input_stride, 1});
    product->weights = memory::desc({s.n_panels, s.n_columns, kPanelRows}, type,
                                    memory::dims{s.n_columns * kPanelRows, kPanelRows, 1});
    product->output = memory::desc({s.n_panels, s.batch_rows, kPanelRows}, memory::data_type::f32,
                                   memory::dims{kPanelRows, s.output_stride, 1});
    dnnl::primitive_attr attributes;
    if (s.add) {
      dnnl::post_ops add;
      add.append_sum(1.0F);
      attributes.set_post_ops(add);
    }
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc description(engine_, product->source, product->weights,
                                                   product->output, attributes);
#else
    const dnnl::matmul::primitive_desc description(
        dnnl::matmul::desc(product->source, product->weights, product->output), attributes,
        engine_);
#endif
    product->primitive = dnnl::matmul(description);
    return product;
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  std::map<Shape, std::unique_ptr<Product>> products_;
};

}  // namespace

std::unique_ptr<FastDense> FastDense::create() {
  try {
    return std::make_unique<OneDnnDense>();
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

std::string_view FastDense::library() {
  static const std::string name = "oneDNN " + std::to_string(DNNL_VERSION_MAJOR) + "." +
                                  std::to_string(DNNL_VERSION_MINOR) + "." +
                                  std::to_string(DNNL_VERSION_PATCH);
  return name;
}

}  // namespace kvasir
