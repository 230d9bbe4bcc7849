#include "models/weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "core/base/checked.h"
#include "core/base/error.h"

namespace kvasir {
namespace {

using kernels::WeightFormat;

std::optional<WeightFormat> packed_format(DType dtype) {
  switch (dtype) {
    case DType::f32: return WeightFormat::f32;
    case DType::f16: return WeightFormat::f16;
    case DType::bf16: return WeightFormat::bf16;
    case DType::q4_0: return WeightFormat::q4_0;
    case DType::q4_1: return WeightFormat::q4_1;
    case DType::q5_0: return WeightFormat::q5_0;
    case DType::q5_1: return WeightFormat::q5_1;
    case DType::q8_0: return WeightFormat::q8_0;
    case DType::iq4_nl: return WeightFormat::iq4_nl;
    case DType::mxfp4: return WeightFormat::mxfp4;
    case DType::q2_k: return WeightFormat::q2_k;
    case DType::q3_k: return WeightFormat::q3_k;
    case DType::q4_k: return WeightFormat::q4_k;
    case DType::q5_k: return WeightFormat::q5_k;
    case DType::q6_k: return WeightFormat::q6_k;
    case DType::iq4_xs: return WeightFormat::iq4_xs;
    case DType::iq2_xxs: return WeightFormat::iq2_xxs;
    case DType::iq2_xs: return WeightFormat::iq2_xs;
    case DType::iq2_s: return WeightFormat::iq2_s;
    case DType::iq3_xxs: return WeightFormat::iq3_xxs;
    case DType::iq3_s: return WeightFormat::iq3_s;
    case DType::iq1_s: return WeightFormat::iq1_s;
    case DType::iq1_m: return WeightFormat::iq1_m;
    case DType::tq1_0: return WeightFormat::tq1_0;
    case DType::tq2_0: return WeightFormat::tq2_0;
    default: return std::nullopt;
  }
}

/// Fetches tensors by name, demanding type and shape, and remembers which were taken.
class TensorTaker {
 public:
  explicit TensorTaker(const gguf::Header& header) : header_(header) {}

  bool has(const std::string& name) const { return header_.find_tensor(name) != nullptr; }

  /// A matrix [rows, columns]; adds a job. rows 0: any number.
  Status matrix(const std::string& name, int64_t rows, int64_t columns, PackedMatrix& destination,
                int64_t unpair_head_dim = 0) {
    auto found = take(name);
    if (!found) return std::move(found).error();
    const TensorView& t = **found;
    if (t.n_dims > 2 || t.n_columns() != columns || (rows != 0 && t.n_rows() != rows)) {
      return make_error(ErrorCode::corrupt_file,
                        "tensor '{}' has shape [{}, {}], but the model's sizes ask for [{}, {}]",
                        name, t.n_rows(), t.n_columns(),
                        rows != 0 ? std::to_string(rows) : "any", columns);
    }
    const auto format = packed_format(t.dtype);
    if (!format) {
      return make_error(ErrorCode::unsupported,
                        "tensor '{}' has type {}, which is not a type of weights (or not known yet)",
                        name, dtype_name(t.dtype));
    }
    if (t.n_columns() % kernels::format_columns(*format) != 0) {
      return make_error(ErrorCode::corrupt_file,
                        "tensor '{}' has type {} and {} columns, which are not whole blocks of {}",
                        name, dtype_name(t.dtype), t.n_columns(), kernels::format_columns(*format));
    }
    destination = {.format = *format,
                   .n_rows = t.n_rows(),
                   .n_columns = t.n_columns(),
                   .panels = nullptr,
                   .panel_bytes = kernels::packed_panel_bytes(*format, t.n_columns())};
    const auto n_panels = static_cast<size_t>(divide_up(t.n_rows(), kernels::kPanelRows));
    jobs.push_back({*found, &destination, unpair_head_dim, arena_bytes});
    arena_bytes += n_panels * destination.panel_bytes;
    all_f32 = all_f32 && *format == WeightFormat::f32;
    return {};
  }

  /// A vector [size] of finite floats.
  Status vector(const std::string& name, int64_t size, std::vector<float>& destination) {
    auto found = take(name);
    if (!found) return std::move(found).error();
    const TensorView& t = **found;
    if (t.dtype != DType::f32) {
      return make_error(ErrorCode::unsupported, "tensor '{}' has type {}, but must be F32", name,
                        dtype_name(t.dtype));
    }
    if (t.n_columns() != size || t.n_rows() != 1) {
      return make_error(ErrorCode::corrupt_file,
                        "tensor '{}' has {} elements, but the model's sizes ask for {}", name,
                        t.n_columns() * t.n_rows(), size);
    }
    destination.resize(static_cast<size_t>(size));
    std::memcpy(destination.data(), t.data, destination.size() * sizeof(float));
    if (!std::all_of(destination.begin(), destination.end(), [](float v) { return std::isfinite(v); }))
      return make_error(ErrorCode::corrupt_file, "tensor '{}' holds a NaN or an infinity", name);
    return {};
  }

  /// Fails when the file holds a tensor nobody took.
  Status all_taken() const {
    for (const auto& tensor : header_.tensors()) {
      if (taken_.count(tensor.name) == 0) {
        return make_error(ErrorCode::unsupported,
                          "tensor '{}' is not part of this architecture", tensor.name);
      }
    }
    return {};
  }

  std::vector<PackJob> jobs;
  size_t arena_bytes = 0;
  bool all_f32 = true;

 private:
  Result<const TensorView*> take(const std::string& name) {
    const TensorView* tensor = header_.find_tensor(name);
    if (tensor == nullptr)
      return make_error(ErrorCode::corrupt_file, "tensor '{}' is missing", name);
    taken_.insert(name);
    return tensor;
  }

  const gguf::Header& header_;
  std::set<std::string, std::less<>> taken_;
};

Status plan_layer(TensorTaker& take, const Config& config, int64_t index, LayerWeights& layer) {
  const auto name = [&](const char* role) { return fmt::format("blk.{}.{}.weight", index, role); };
  const int64_t hidden = config.hidden_size;
  const int64_t n_q = config.n_query_columns();
  const int64_t n_kv = config.n_kv_columns();
  const int64_t ff = config.intermediate_size;
  const int64_t unpair = config.file_pairs_interleaved ? config.head_dim : 0;
  const struct {
    const char* role;
    int64_t rows, columns, unpair_head_dim;
    PackedMatrix& destination;
  } matrices[] = {
      {"attn_q", n_q, hidden, unpair, layer.query},
      {"attn_k", n_kv, hidden, unpair, layer.key},
      {"attn_v", n_kv, hidden, 0, layer.value},
      {"attn_output", hidden, n_q, 0, layer.attention_output},
      {"ffn_gate", ff, hidden, 0, layer.gate},
      {"ffn_up", ff, hidden, 0, layer.up},
      {"ffn_down", hidden, ff, 0, layer.down},
  };
  const struct {
    bool wanted;
    const char* role;
    const char* suffix;
    int64_t size;
    std::vector<float>& destination;
  } vectors[] = {
      {true, "attn_norm", "weight", hidden, layer.attention_norm},
      {true, "ffn_norm", "weight", hidden, layer.feed_forward_norm},
      {config.attention_biases, "attn_q", "bias", n_q, layer.query_bias},
      {config.attention_biases, "attn_k", "bias", n_kv, layer.key_bias},
      {config.attention_biases, "attn_v", "bias", n_kv, layer.value_bias},
      {config.query_key_norms, "attn_q_norm", "weight", config.head_dim, layer.query_norm},
      {config.query_key_norms, "attn_k_norm", "weight", config.head_dim, layer.key_norm},
      {config.post_norms, "post_attention_norm", "weight", hidden, layer.attention_post_norm},
      {config.post_norms, "post_ffw_norm", "weight", hidden, layer.feed_forward_post_norm},
  };
  for (const auto& v : vectors) {
    if (!v.wanted) continue;
    const auto tensor = fmt::format("blk.{}.{}.{}", index, v.role, v.suffix);
    if (auto s = take.vector(tensor, v.size, v.destination); !s) return s;
  }
  for (const auto& m : matrices) {
    if (auto s = take.matrix(name(m.role), m.rows, m.columns, m.destination, m.unpair_head_dim); !s)
      return s;
  }
  return {};
}

/// Source row of row `row` when each head's rotary rows go from (2i, 2i + 1) to (i, i + d / 2)
/// pairs: row i of a head is file row 2i, row i + d / 2 is file row 2i + 1.
int64_t unpaired_source(int64_t row, int64_t head_dim) {
  const int64_t head = row / head_dim;
  const int64_t in_head = row % head_dim;
  const int64_t half = head_dim / 2;
  const int64_t source = in_head < half ? 2 * in_head : 2 * (in_head - half) + 1;
  return head * head_dim + source;
}

}  // namespace

void InputForms::add(const PackedMatrix& reader) {
  const auto form = kernels::input_form(reader.format);
  groups = groups || form == kernels::InputForm::groups;
  wide_groups = wide_groups || form == kernels::InputForm::wide_groups;
}

void InputForms::add(InputForms other) {
  groups = groups || other.groups;
  wide_groups = wide_groups || other.wide_groups;
}

namespace {

void find_inputs(Weights& weights) {
  MatrixInputs& all = weights.inputs;
  for (LayerWeights& w : weights.layers) {
    for (const PackedMatrix* m : {&w.query, &w.key, &w.value}) w.inputs.attention.add(*m);
    w.inputs.attention_output.add(w.attention_output);
    for (const PackedMatrix* m : {&w.gate, &w.up}) w.inputs.feed_forward.add(*m);
    w.inputs.down.add(w.down);
    all.attention.add(w.inputs.attention);
    all.attention_output.add(w.inputs.attention_output);
    all.feed_forward.add(w.inputs.feed_forward);
    all.down.add(w.inputs.down);
  }
  all.head.add(weights.tied_output ? weights.token_embedding : weights.output);
}

}  // namespace

Result<std::vector<PackJob>> plan_weights(const gguf::Header& header, Config& config,
                                          Weights& weights, size_t* arena_bytes) {
  TensorTaker take(header);
  if (auto s = take.matrix("token_embd.weight", 0, config.hidden_size, weights.token_embedding); !s)
    return std::move(s).error();
  config.n_vocab = weights.token_embedding.n_rows;
  weights.layers.resize(static_cast<size_t>(config.n_layers));
  for (int64_t i = 0; i < config.n_layers; ++i) {
    if (auto s = plan_layer(take, config, i, weights.layers[static_cast<size_t>(i)]); !s)
      return std::move(s).error();
  }
  if (auto s = take.vector("output_norm.weight", config.hidden_size, weights.output_norm); !s)
    return std::move(s).error();
  weights.tied_output = !take.has("output.weight");
  if (!weights.tied_output) {
    if (auto s = take.matrix("output.weight", config.n_vocab, config.hidden_size, weights.output);
        !s)
      return std::move(s).error();
  }
  if (config.may_have_rope_factors && take.has("rope_freqs.weight")) {
    if (auto s = take.vector("rope_freqs.weight", config.rotary_dim / 2, weights.rope_factors); !s)
      return std::move(s).error();
  }
  if (auto s = take.all_taken(); !s) return std::move(s).error();
  weights.all_f32 = take.all_f32;
  find_inputs(weights);
  *arena_bytes = take.arena_bytes;
  return std::move(take.jobs);
}

namespace {

/// Packs the panels [first, end) of one matrix; false when a scale or weight is not finite.
bool pack_panels(const PackJob& job, int64_t first, int64_t end, std::byte* arena) {
  const TensorView& source = *job.source;
  const PackedMatrix& packed = *job.destination;
  const auto row_bytes = static_cast<size_t>(source.size_bytes / static_cast<uint64_t>(source.n_rows()));
  std::vector<std::byte> reordered;
  for (int64_t panel = first; panel < end; ++panel) {
    std::byte* destination =
        arena + job.arena_offset + static_cast<size_t>(panel) * packed.panel_bytes;
    if (job.unpair_head_dim == 0) {
      if (!kernels::pack_panel(packed.format, source.data, row_bytes, packed.n_rows,
                               packed.n_columns, panel, destination))
        return false;
      continue;
    }
    const int64_t first_row = panel * kernels::kPanelRows;
    const int64_t rows = std::min<int64_t>(kernels::kPanelRows, packed.n_rows - first_row);
    reordered.resize(row_bytes * static_cast<size_t>(rows));
    for (int64_t r = 0; r < rows; ++r) {
      const auto from = static_cast<size_t>(unpaired_source(first_row + r, job.unpair_head_dim));
      std::memcpy(reordered.data() + row_bytes * static_cast<size_t>(r),
                  source.data + row_bytes * from, row_bytes);
    }
    if (!kernels::pack_panel(packed.format, reordered.data(), row_bytes, rows, packed.n_columns, 0,
                             destination))
      return false;
  }
  return true;
}

}  // namespace

Status pack_weights(const gguf::File& file, const std::vector<PackJob>& jobs, size_t arena_bytes,
                    Weights& weights, Threads& threads,
                    const std::function<void(int64_t, int64_t)>& progress,
                    const CancelToken* cancel) {
  auto arena = WeightArena::allocate(arena_bytes);
  if (!arena) return std::move(arena).error();
  weights.arena = std::move(*arena);
  std::byte* base = weights.arena.data();

  int64_t total = 0;
  for (const auto& job : jobs) total += static_cast<int64_t>(job.source->size_bytes);
  std::atomic<int64_t> done{0};
  std::atomic<const TensorView*> bad{nullptr};
  threads.run(
      [&](Team& team) {
        for (const auto& job : jobs) {
          const int64_t n_panels = divide_up(job.source->n_rows(), kernels::kPanelRows);
          // About 1 MB of source at a time: small enough to share out, large enough to drop.
          const auto panel_source = static_cast<int64_t>(job.source->size_bytes) / n_panels;
          const int64_t piece = std::max<int64_t>(1, (1 << 20) / std::max<int64_t>(1, panel_source));
          team.for_pieces(n_panels, piece, [&](int64_t first, int64_t end) {
            if (!pack_panels(job, first, end, base)) bad.store(job.source);
            const auto offset = static_cast<uint64_t>(panel_source * first);
            if (job.unpair_head_dim == 0) {
              file.mapping.drop_pages(job.source->data + offset,
                                      static_cast<uint64_t>(panel_source * (end - first)));
            }
            done.fetch_add(panel_source * (end - first), std::memory_order_relaxed);
            if (team.thread() == 0 && progress) progress(done.load(), total);
          });
          if (job.unpair_head_dim != 0 && team.thread() == 0)
            file.mapping.drop_pages(job.source->data, job.source->size_bytes);
        }
      },
      cancel);
  if (cancel != nullptr && cancel->requested())
    return make_error(ErrorCode::cancelled, "loading was cancelled");
  if (const TensorView* tensor = bad.load()) {
    return make_error(ErrorCode::corrupt_file,
                      "tensor '{}' holds a scale or weight that is NaN or infinite", tensor->name);
  }
  for (const auto& job : jobs) job.destination->panels = base + job.arena_offset;
  if (weights.tied_output) weights.output = weights.token_embedding;
  if (progress) progress(total, total);
  return {};
}

}  // namespace kvasir
