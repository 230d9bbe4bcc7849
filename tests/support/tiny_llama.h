// A tiny random model of the llama family or of its relatives, and its forward pass written down in
// double.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/support/gguf_writer.h"

namespace kvasir::test {

struct TinyLlama {
  int64_t n_layers = 2, hidden = 64, n_heads = 4, n_kv_heads = 2, ff = 96, n_vocab = 260;
  int64_t context = 2048;
  int64_t head_dim() const { return hidden / n_heads; }
  double rope_base = 10000, epsilon = 1e-5;
  bool tied = false;
  unsigned seed = 1;

  /// "llama"; "qwen2": biases of q, k, v; "gemma3": norms of heads and behind sublayers, GELU gates,
  /// scaled embeddings, windows with a RoPE base of their own in all layers but every sixth.
  std::string architecture = "llama";
  int64_t window = 8;
  double local_rope_base = 10000;
  bool is_gemma() const { return architecture == "gemma3"; }
  bool sees_window(int64_t layer) const { return is_gemma() && (layer + 1) % 6 != 0; }

  std::map<std::string, std::vector<float>> tensors;  // row-major [rows, columns]
  std::map<std::string, std::pair<int64_t, int64_t>> shapes;

  void make() {
    std::mt19937 random(seed);
    const auto add = [&](const std::string& name, int64_t rows, int64_t columns, double scale,
                         double offset = 0) {
      std::vector<float> values(static_cast<size_t>(rows * columns));
      for (auto& v : values) {
        const double unit = static_cast<double>(random()) / 4294967296.0 - 0.5;
        v = static_cast<float>(offset + scale * unit);
      }
      tensors[name] = values;
      shapes[name] = {rows, columns};
    };
    const int64_t kv = n_kv_heads * head_dim();
    add("token_embd.weight", n_vocab, hidden, 2.0);
    for (int64_t i = 0; i < n_layers; ++i) {
      const std::string p = "blk." + std::to_string(i) + ".";
      add(p + "attn_norm.weight", 1, hidden, 0.5, 1.0);
      add(p + "attn_q.weight", hidden, hidden, 0.8);
      add(p + "attn_k.weight", kv, hidden, 0.8);
      add(p + "attn_v.weight", kv, hidden, 0.4);
      add(p + "attn_output.weight", hidden, hidden, 0.4);
      add(p + "ffn_norm.weight", 1, hidden, 0.5, 1.0);
      add(p + "ffn_gate.weight", ff, hidden, 0.4);
      add(p + "ffn_up.weight", ff, hidden, 0.4);
      add(p + "ffn_down.weight", hidden, ff, 0.4);
      if (architecture == "qwen2") {
        add(p + "attn_q.bias", 1, hidden, 1.0);
        add(p + "attn_k.bias", 1, kv, 1.0);
        add(p + "attn_v.bias", 1, kv, 1.0);
      }
      if (is_gemma()) {
        add(p + "attn_q_norm.weight", 1, head_dim(), 0.5, 1.0);
        add(p + "attn_k_norm.weight", 1, head_dim(), 0.5, 1.0);
        add(p + "post_attention_norm.weight", 1, hidden, 0.5, 1.0);
        add(p + "post_ffw_norm.weight", 1, hidden, 0.5, 1.0);
      }
    }
    add("output_norm.weight", 1, hidden, 0.5, 1.0);
    if (!tied) add("output.weight", n_vocab, hidden, 0.5);
  }

  /// The file, with a vocabulary of all bytes and a few control tokens. Tests may change it before
  /// it is written.
  GgufWriter file() const {
    GgufWriter w;
    w.text("general.architecture", architecture);
    const std::string key = architecture + ".";
    w.text("general.name", "tiny random " + architecture);
    w.u32(key + "block_count", static_cast<uint32_t>(n_layers));
    w.u32(key + "context_length", static_cast<uint32_t>(context));
    w.u32(key + "embedding_length", static_cast<uint32_t>(hidden));
    w.u32(key + "feed_forward_length", static_cast<uint32_t>(ff));
    w.u32(key + "attention.head_count", static_cast<uint32_t>(n_heads));
    w.u32(key + "attention.head_count_kv", static_cast<uint32_t>(n_kv_heads));
    w.u32(key + "rope.dimension_count", static_cast<uint32_t>(head_dim()));
    w.f32(key + "rope.freq_base", static_cast<float>(rope_base));
    w.f32(key + "attention.layer_norm_rms_epsilon", static_cast<float>(epsilon));
    if (is_gemma()) {
      w.u32(key + "attention.sliding_window", static_cast<uint32_t>(window));
      w.f32(key + "rope.freq_base_swa", static_cast<float>(local_rope_base));
    }
    add_vocabulary(w);
    for (const auto& [name, values] : tensors) {
      const auto [rows, columns] = shapes.at(name);
      std::vector<uint64_t> shape = {static_cast<uint64_t>(columns)};
      if (rows != 1) shape.push_back(static_cast<uint64_t>(rows));
      w.tensor(name, shape, values);
    }
    return w;
  }

  /// Logits [tokens][n_vocab] in double; queries and keys are rotated in pairs (2i, 2i + 1), as
  /// llama's row order means, else (i, i + head_dim / 2).
  std::vector<std::vector<double>> forward(const std::vector<int32_t>& tokens) const {
    const size_t n = tokens.size();
    std::vector<std::vector<double>> x(n);
    for (size_t t = 0; t < n; ++t) x[t] = row("token_embd.weight", tokens[t]);
    if (is_gemma()) {
      for (auto& h : x)
        for (auto& e : h) e *= std::sqrt(static_cast<double>(hidden));
    }
    for (int64_t i = 0; i < n_layers; ++i) layer(i, x);
    std::vector<std::vector<double>> logits;
    for (auto& h : x)
      logits.push_back(multiply(tied ? "token_embd.weight" : "output.weight",
                                norm(h, "output_norm.weight")));
    return logits;
  }

 private:
  using Vector = std::vector<double>;

  Vector row(const std::string& name, int64_t r) const {
    const auto columns = shapes.at(name).second;
    const auto& all = tensors.at(name);
    return Vector(all.begin() + r * columns, all.begin() + (r + 1) * columns);
  }
  Vector multiply(const std::string& name, const Vector& v) const {
    const auto [rows, columns] = shapes.at(name);
    const auto& w = tensors.at(name);
    Vector y(static_cast<size_t>(rows), 0.0);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        y[static_cast<size_t>(r)] +=
            static_cast<double>(w[static_cast<size_t>(r * columns + c)]) * v[static_cast<size_t>(c)];
    return y;
  }
  Vector norm(const Vector& v, const std::string& weight) const {
    Vector y = v;
    norm_part(y, 0, v.size(), weight);
    return y;
  }
  void norm_part(Vector& v, size_t first, size_t n, const std::string& weight) const {
    double squares = 0;
    for (size_t c = 0; c < n; ++c) squares += v[first + c] * v[first + c];
    const double r = 1 / std::sqrt(squares / static_cast<double>(n) + static_cast<float>(epsilon));
    for (size_t c = 0; c < n; ++c) v[first + c] *= r * tensors.at(weight)[c];
  }
  /// Wq · h and the like, with bias and norms of heads where the family has them.
  Vector project(const std::string& p, char which, const Vector& h) const {
    const std::string name = p + "attn_" + which;
    Vector y = multiply(name + ".weight", h);
    if (const auto bias = tensors.find(name + ".bias"); bias != tensors.end())
      for (size_t c = 0; c < y.size(); ++c) y[c] += bias->second[c];
    const auto d = static_cast<size_t>(head_dim());
    if (tensors.count(name + "_norm.weight") > 0)
      for (size_t at = 0; at < y.size(); at += d) norm_part(y, at, d, name + "_norm.weight");
    return y;
  }
  void rotate(Vector& v, size_t position, double base) const {
    const auto d = static_cast<size_t>(head_dim());
    const bool interleaved = architecture == "llama";
    for (size_t h = 0; h < v.size(); h += d) {
      for (size_t i = 0; i < d / 2; ++i) {
        const double angle =
            static_cast<double>(position) *
            std::pow(static_cast<double>(static_cast<float>(base)),
                     -2.0 * static_cast<double>(i) / static_cast<double>(d));
        double& a = v[h + (interleaved ? 2 * i : i)];
        double& b = v[h + (interleaved ? 2 * i + 1 : i + d / 2)];
        const double a0 = a;
        a = a0 * std::cos(angle) - b * std::sin(angle);
        b = b * std::cos(angle) + a0 * std::sin(angle);
      }
    }
  }
  double activate(double g) const {
    if (!is_gemma()) return g / (1 + std::exp(-g));
    return 0.5 * g * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (g + 0.044715 * g * g * g)));
  }
  void add_sublayer(Vector& x, Vector y, const std::string& post_norm) const {
    if (is_gemma()) y = norm(y, post_norm);
    for (size_t c = 0; c < y.size(); ++c) x[c] += y[c];
  }
  void layer(int64_t index, std::vector<Vector>& x) const {
    const std::string p = "blk." + std::to_string(index) + ".";
    const size_t n = x.size();
    const double base = sees_window(index) ? local_rope_base : rope_base;
    std::vector<Vector> q(n), k(n), v(n);
    for (size_t t = 0; t < n; ++t) {
      const Vector h = norm(x[t], p + "attn_norm.weight");
      q[t] = project(p, 'q', h);
      k[t] = project(p, 'k', h);
      v[t] = project(p, 'v', h);
      rotate(q[t], t, base);
      rotate(k[t], t, base);
    }
    const auto d = static_cast<size_t>(head_dim());
    for (size_t t = 0; t < n; ++t) {
      const size_t seen = sees_window(index) ? static_cast<size_t>(window) : n;
      const size_t first = t + 1 > seen ? t + 1 - seen : 0;
      Vector out(static_cast<size_t>(hidden), 0.0);
      for (size_t head = 0; head < static_cast<size_t>(n_heads); ++head) {
        const size_t kv = head / static_cast<size_t>(n_heads / n_kv_heads);
        Vector s(t + 1);
        double most = -1e300, sum = 0;
        for (size_t j = first; j <= t; ++j) {
          for (size_t c = 0; c < d; ++c) s[j] += q[t][head * d + c] * k[j][kv * d + c];
          s[j] /= std::sqrt(static_cast<double>(d));
          most = std::max(most, s[j]);
        }
        for (size_t j = first; j <= t; ++j) sum += s[j] = std::exp(s[j] - most);
        for (size_t j = first; j <= t; ++j)
          for (size_t c = 0; c < d; ++c) out[head * d + c] += s[j] / sum * v[j][kv * d + c];
      }
      add_sublayer(x[t], multiply(p + "attn_output.weight", out), p + "post_attention_norm.weight");
    }
    for (size_t t = 0; t < n; ++t) {
      const Vector h = norm(x[t], p + "ffn_norm.weight");
      Vector g = multiply(p + "ffn_gate.weight", h);
      const Vector u = multiply(p + "ffn_up.weight", h);
      for (size_t c = 0; c < g.size(); ++c) g[c] = activate(g[c]) * u[c];
      add_sublayer(x[t], multiply(p + "ffn_down.weight", g), p + "post_ffw_norm.weight");
    }
  }

  /// GPT-2's spelling of the 256 bytes (printable Latin-1 as itself, the rest from U+0100 on),
  /// then control tokens.
  void add_vocabulary(GgufWriter& w) const {
    std::vector<std::string> tokens;
    std::vector<int32_t> kinds;
    int next = 256;
    const auto utf8 = [](int c) {
      std::string s;
      if (c < 0x80) {
        s += static_cast<char>(c);
      } else {
        s += static_cast<char>(0xC0 | (c >> 6));
        s += static_cast<char>(0x80 | (c & 63));
      }
      return s;
    };
    for (int b = 0; b < 256; ++b) {
      const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
      tokens.push_back(utf8(printable ? b : next++));
      kinds.push_back(1);
    }
    for (const char* control : {"<|start|>", "<|end|>"}) {
      tokens.emplace_back(control);
      kinds.push_back(3);
    }
    while (static_cast<int64_t>(tokens.size()) < n_vocab) {
      tokens.push_back("<|unused" + std::to_string(tokens.size()) + "|>");
      kinds.push_back(3);
    }
    w.text("tokenizer.ggml.model", "gpt2");
    w.text("tokenizer.ggml.pre", "gpt-2");
    w.texts("tokenizer.ggml.tokens", tokens);
    w.ints("tokenizer.ggml.token_type", kinds);
    w.texts("tokenizer.ggml.merges", {});
    w.u32("tokenizer.ggml.bos_token_id", 256);
    w.u32("tokenizer.ggml.eos_token_id", 257);
    w.boolean("tokenizer.ggml.add_bos_token", false);
  }
};

}  // namespace kvasir::test
