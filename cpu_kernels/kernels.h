// The one table of kernels: what each computes, its shapes, its preconditions.
//
// Pure functions over memory the caller owns: no allocation, no files, no locks, no threads, no
// model names. `scalar` is the definition; every other table gives the same bits
// (docs/design.md, section 2). Vectors may start at any address unless a comment asks for more;
// nothing is read outside the given shape, and nothing is written there.
//
// Only plain structs here: this header is included by files compiled for one instruction set, so
// it must not contain inline functions that a linker could share with the rest of the program.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvasir::kernels {

// Terms: a *panel* is 16 consecutive weight rows; a *line* is 4 consecutive columns of a panel
// (16 rows x 4 codes = 64 bytes of int8); a *group* is 32 consecutive columns (a *wide* group: 256),
// quantised together.
enum : int64_t {
  kPanelRows = 16,
  kLineColumns = 4,
  kGroupColumns = 32,
  kWideGroupColumns = 256,
  kDenseChunk = 256,      ///< dense weights: terms added before they join the total
  kKvBlockPositions = 32, ///< positions in one KV block
  kAttentionPartial = 1024, ///< keys (absolute positions) in one attention partial
  kLanes = 16,            ///< virtual lanes of every sum across an array
};

// ---------------------------------------------------------------------------------------------
// Weight matrices

/// How a packed matrix spells its weights: the types of GGML's files
/// (https://github.com/ggml-org/ggml). The value of weight (n, k) is what the file's format says;
/// packing loses nothing. Dense formats lie as [n_columns][16 rows] elements; the others are
/// described in cpu_kernels/formats, each where it is defined.
enum class WeightFormat : uint8_t {
  // dense: activations are floats
  f32, f16, bf16,
  // activations in groups of 32 codes
  q4_0, q4_1, q5_0, q5_1, q8_0, iq4_nl, mxfp4,
  // activations in wide groups of 256 codes
  q2_k, q3_k, q4_k, q5_k, q6_k, iq4_xs, iq2_xxs, iq2_xs, iq2_s, iq3_xxs, iq3_s, iq1_s, iq1_m,
  tq1_0, tq2_0,
  count
};

/// What a matrix product reads of its input.
enum class InputForm : uint8_t {
  floats,
  groups,       ///< codes in groups of 32
  wide_groups,  ///< codes in groups of 256
};
InputForm input_form(WeightFormat format);

/// "q4_k", as in WeightFormat.
const char* format_name(WeightFormat format);

/// Columns must be a multiple of this: 1, 32 or 256.
int64_t format_columns(WeightFormat format);

/// A weight matrix [n_rows, n_columns] in panels of 16 rows; the last panel's missing rows are
/// zero. Every panel starts on a 64-byte line. n_columns is a multiple of format_columns.
struct PackedMatrix {
  WeightFormat format;
  int64_t n_rows;
  int64_t n_columns;
  const std::byte* panels;  ///< [ceil(n_rows / 16)][panel_bytes]
  size_t panel_bytes;       ///< see packed_panel_bytes
};

/// Bytes of one panel in memory, a multiple of 64.
size_t packed_panel_bytes(WeightFormat format, int64_t n_columns);

/// Packs rows [16 * panel, 16 * panel + 16) of a row-major source in the file's own block format
/// (`source` is row 0, `source_row_bytes` from row to row) into `destination` (packed_panel_bytes). Same code on every machine. Returns false when a block's
/// scale or minimum (or a dense weight) is NaN or infinite.
bool pack_panel(WeightFormat format, const std::byte* source, size_t source_row_bytes,
                int64_t n_rows, int64_t n_columns, int64_t panel, std::byte* destination);

/// One row of the matrix as float [n_columns]: an embedding lookup. Equals the `gguf` package's
/// dequantisation bit for bit: (d * scale) * code + m * minimum, each operation rounded once
/// (d * scale is exact; m and minimum only where the format has them).
void unpack_row(const PackedMatrix& weights, int64_t row, float* values);

/// Scale of one group of 32 activation codes.
struct ActivationGroup {
  float scale;       ///< value = scale * code
  float scaled_sum;  ///< scale * (float)sum
  int32_t sum;       ///< of the 32 codes
  int32_t unused;
};

/// Scale of one wide group of 256 activation codes, and sums of parts of them.
struct WideActivationGroup {
  float scale;        ///< value = scale * code
  int32_t sum;        ///< of all codes
  int16_t sums32[8];  ///< of 32 codes each
  int16_t sums16[16]; ///< of 16 codes each
  int32_t unused[2];
};

/// Inputs of a matrix product, [n_rows, n_columns]; only the form the weights need is read.
struct Activations {
  int64_t n_rows;
  int64_t n_columns;
  const float* values = nullptr;            ///< dense weights: row m at values + m * values_stride
  int64_t values_stride = 0;          ///< in floats
  const int8_t* codes = nullptr;            ///< groups: row m at codes + m * codes_stride
  int64_t codes_stride = 0;           ///< in bytes, a multiple of 64; codes is 64-byte aligned
  const ActivationGroup* groups = nullptr;  ///< row m at groups + m * groups_stride
  int64_t groups_stride = 0;
  const int8_t* wide_codes = nullptr;       ///< wide groups: codes_stride from row to row, aligned likewise
  const WideActivationGroup* wide_groups = nullptr;  ///< row m at wide_groups + m * wide_groups_stride
  int64_t wide_groups_stride = 0;
};

/// y[m][n] = sum over k of weight[n][k] * x[m][k] (added to what y[m][n] holds if add_to_output),
/// for all m and for the rows n of panels [first_panel, end_panel) that exist.
///
/// One lane owns one n. Quantised: for each group in ascending k, with exact integers over its
/// sub-blocks s (formats without sub-blocks: one, with scale and minimum 1)
///   dot = sum over s of scale[s] * (sum of weight_code * activation_code)
///   low = sum over s of minimum[s] * (sum of activation_code)
/// and every float operation rounded once:
///   groups of 32:  acc = fma(d * scale, (float)dot, acc); with a minimum acc = fma(m, scaled_sum, acc)
///   wide groups:   acc = fma(d * scale, (float)dot, acc); with a minimum acc = fma(m * scale, (float)low, acc)
/// Dense: chunks of 256 columns in ascending k: part = 0; part = fma(w, x, part) for each k;
/// acc = acc + part. (d, m, w widened to float exactly.) acc starts at +0.
/// At the end y = acc, or y = y + acc.
struct MatmulTask {
  const PackedMatrix* weights;
  const Activations* input;
  float* output;          ///< [input->n_rows][n_rows], row m at output + m * output_stride
  int64_t output_stride;  ///< in floats
  int64_t first_panel;
  int64_t end_panel;
  bool add_to_output;
  std::byte* scratch;     ///< matmul_scratch_bytes(), 64-byte aligned, one a thread
};

enum : size_t { kMatmulScratchBytes = 512 * 1024 };

// ---------------------------------------------------------------------------------------------
// Attention over KV blocks

enum class KvType : uint8_t { f32, f16, count };

/// Where one (layer, KV head) lies inside a block of 32 positions:
///   keys   [head_dim][32 positions], values [32 positions][value_stride]
/// value_stride = head_dim rounded up to 16; the padding holds zeros. Key lanes of positions never
/// written, and their value rows, may hold anything, NaN included.
struct KvBlock {
  const std::byte* data;   ///< block base; this head's parts at + key_offset and + value_offset
  int64_t first_position;  ///< of slot 0, a multiple of 32
};

/// One partial of attention: queries (rows) of one KV head against the keys of
/// [1024 * i, 1024 * (i + 1)), all blocks of one partial, in ascending position.
///
/// For every row with at least one visible key here, block by block (a block in which the row
/// sees nothing is a no-op):
///   s[p]  = sum over d ascending of fma(q[d] * scale, key[d][p], .) from +0 (chunks of 256 as in
///           dense matrices when head_dim > 256)
///   soft_cap > 0: s = soft_cap * tanh(s / soft_cap);
///   s = -inf for p outside [first_key, end_key)
///   new_max = max(max, all s);  c = exp(max - new_max);  w[p] = exp(s[p] - new_max)
///   l[lane] = fma(l[lane], c, w[lane]), then + w[lane + 16]
///   o[d] = o[d] * c, then fma(w[p], value[p][d], o[d]) for each visible p ascending
/// starting from max = -inf, l = 0, o = 0; exp(-inf) is 0, exp(NaN) is NaN.
struct AttentionTask {
  KvType key_type;
  KvType value_type;
  int64_t head_dim;
  const KvBlock* blocks;  ///< [n_blocks]
  int64_t n_blocks;
  size_t key_offset;      ///< bytes from block base
  size_t value_offset;
  int64_t n_rows;               ///< any number >= 1
  const float* const* queries;  ///< [n_rows] pointers to [head_dim], already rotated
  const int64_t* first_key;     ///< [n_rows] first visible position
  const int64_t* end_key;       ///< [n_rows] one past the last visible position
  float scale;                  ///< each q[d] is multiplied by it once, rounded
  float soft_cap;               ///< 0: none
  float* state;                 ///< [n_rows][attention_state_floats(head_dim)], written whole
  std::byte* scratch;           ///< attention_scratch_bytes(), 64-byte aligned, one a thread
};

// A row's state: [0] max; [16, 32) l by lane; [32, 32 + head_dim rounded up to 16) o; [1, 16) unused.
// A row that saw nothing has max = -inf, l = 0, o = 0.
enum : int64_t { kStateMax = 0, kStateSum = 16, kStateOutput = 32, kMaxHeadDim = 1024 };
enum : size_t { kAttentionScratchBytes = 1024 * 1024 };

/// Which two elements of a head turn together.
enum class RopePairs : uint8_t {
  interleaved,  ///< (2i, 2i + 1)
  half_split,   ///< (i, i + rotary_dim / 2)
};

// ---------------------------------------------------------------------------------------------
// The table

/// All functions are reentrant and may run on any thread.
struct KernelTable {
  const char* name;  ///< "scalar", "avx2", "avx512", "avx512vnni", "neon"

  void (*matmul[static_cast<int>(WeightFormat::count)])(const MatmulTask&);

  /// codes[k] = ties-to-even(x[k] * (127 / absmax of the group)) in [-127, 127], scale = absmax /
  /// 127; a group with absmax below 2^-120 counts as zeros: scale 0, codes 0. A NaN in the group makes its scale NaN.
  /// n a multiple of 32.
  void (*quantize)(const float* x, int64_t n, int8_t* codes, ActivationGroup* groups);

  /// The same for wide groups, n a multiple of 256; with the sums of the parts.
  void (*quantize_wide)(const float* x, int64_t n, int8_t* codes, WideActivationGroup* groups);

  /// y[i] = (x[i] * r) * weight[i], r = 1 / sqrt(sum of squares / n + epsilon). y may be x.
  /// Sum: lane i % 16 takes fma(x, x, lane) in ascending i; lanes are added as the tree of
  /// distances 8, 4, 2, 1.
  void (*rms_norm)(const float* x, const float* weight, float epsilon, float* y, int64_t n);

  /// y[i] = gate[i] / (1 + exp(-gate[i])) * up[i]; left to right. y may be gate or up.
  void (*swiglu)(const float* gate, const float* up, float* y, int64_t n);

  /// y[i] = (0.5 * gate[i]) * (1 + tanh(u)) * up[i], left to right: GELU in its tanh form (Hendrycks
  /// and Gimpel 2016) as a gate. u = sqrt(2 / pi) * fma(0.044715 * (gate * gate), gate, gate). y may
  /// be gate or up.
  void (*geglu)(const float* gate, const float* up, float* y, int64_t n);

  /// y[i] = a[i] + b[i].
  void (*add)(const float* a, const float* b, float* y, int64_t n);

  /// Rotates the first rotary_dim elements of each of n_heads heads in place:
  /// (a, b) -> (fma(a, cos, -(b * sin)), fma(b, cos, a * sin)). cos, sin: [rotary_dim / 2].
  void (*rope)(float* x, int64_t n_heads, int64_t head_stride, int64_t rotary_dim,
               const float* cos, const float* sin, RopePairs pairs);

  /// Writes one position (slot 0..31) of one head: key into [head_dim][32], value into
  /// [32][value_stride] (its padding too, as zeros). f16: round to nearest even, overflow to inf.
  void (*store_key[static_cast<int>(KvType::count)])(const float* key, int64_t head_dim,
                                                     int64_t slot, std::byte* keys);
  void (*store_value[static_cast<int>(KvType::count)])(const float* value, int64_t head_dim,
                                                       int64_t slot, std::byte* values);

  void (*attention)(const AttentionTask&);

  /// Merges the state of the next partial into `running`, both of one row:
  /// M = max of both; a = exp(running.max - M), b = exp(next.max - M) (0 where that max is -inf);
  /// l = fma(next.l, b, running.l * a), o likewise. A next that saw nothing changes nothing.
  void (*attention_merge)(float* running, const float* next, int64_t head_dim);

  /// output[d] = o[d] / (l summed over lanes by the tree). A row that saw nothing gives zeros.
  void (*attention_finish)(const float* state, int64_t head_dim, float* output);

  /// x becomes exp(x - max) / sum; sum over 16 lanes and the tree. n >= 1.
  void (*softmax)(float* x, int64_t n);

  /// Index of the largest element, the lowest index among equals. n >= 1. Every x finite.
  int64_t (*argmax)(const float* x, int64_t n);

  /// True when no element is NaN or infinite.
  bool (*all_finite)(const float* x, int64_t n);

  /// Runs `rounds` rounds of 4-bit-code dot products out of registers, as many chains as matmul
  /// uses, and returns how many multiply-adds that were: to measure this table's integer peak.
  int64_t (*multiply_add_peak)(int64_t rounds);
};

// ---------------------------------------------------------------------------------------------
// Dispatch

/// One entry of the ordered list a table is chosen from, best last.
struct KernelChoice {
  const KernelTable* table;  ///< null when this build does not contain it
  const char* name;
  const char* needs;   ///< CPU features, for people: "AVX2 FMA F16C"
  bool cpu_has_it;
};

/// All choices of this architecture, worst first. The pointer lives as long as the program.
const KernelChoice* kernel_choices(int* count);

/// The table for this machine: the best one, or the one that `forced` names (the value of
/// KVASIR_ISA; null or empty: the best). Null when `forced` is unknown or the CPU lacks it;
/// `*why` then says so in a static string ("unknown", "this CPU lacks AVX-512 VNNI").
const KernelTable* choose_kernels(const char* forced, const char** why);

/// The definition.
const KernelTable& scalar_kernels();

}  // namespace kvasir::kernels
