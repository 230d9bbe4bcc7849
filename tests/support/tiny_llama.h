// A tiny random model of the llama family, and its forward pass written down in double.
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
    }
    add("output_norm.weight", 1, hidden, 0.5, 1.0);
    if (!tied) add("output.weight", n_vocab, hidden, 0.5);
  }

  /// The file, with a vocabulary of all bytes and a few control tokens. Tests may change it before
  /// it is written.
  GgufWriter file() const {
    GgufWriter w;
    w.text("general.architecture", "llama");
    w.text("general.name", "tiny random llama");
    w.u32("llama.block_count", static_cast<uint32_t>(n_layers));
    w.u32("llama.context_length", static_cast<uint32_t>(context));
    w.u32("llama.embedding_length", static_cast<uint32_t>(hidden));
    w.u32("llama.feed_forward_length", static_cast<uint32_t>(ff));
    w.u32("llama.attention.head_count", static_cast<uint32_t>(n_heads));
    w.u32("llama.attention.head_count_kv", static_cast<uint32_t>(n_kv_heads));
    w.u32("llama.rope.dimension_count", static_cast<uint32_t>(head_dim()));
    w.f32("llama.rope.freq_base", static_cast<float>(rope_base));
    w.f32("llama.attention.layer_norm_rms_epsilon", static_cast<float>(epsilon));
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
  /// this file's row order means.
  std::vector<std::vector<double>> forward(const std::vector<int32_t>& tokens) const {
    const size_t n = tokens.size();
    std::vector<std::vector<double>> x(n);
    for (size_t t = 0; t < n; ++t) x[t] = row("token_embd.weight", tokens[t]);
    for (int64_t i = 0; i < n_layers; ++i) layer("blk." + std::to_string(i) + ".", x);
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
    double squares = 0;
    for (const double e : v) squares += e * e;
    const double r =
        1 / std::sqrt(squares / static_cast<double>(v.size()) + static_cast<float>(epsilon));
    Vector y(v.size());
    for (size_t c = 0; c < v.size(); ++c) y[c] = v[c] * r * tensors.at(weight)[c];
    return y;
  }
  void rotate(Vector& v, int64_t heads, size_t position) const {
    const int64_t d = head_dim();
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < d / 2; ++i) {
        const double angle =
            static_cast<double>(position) *
            std::pow(static_cast<double>(static_cast<float>(rope_base)), -2.0 * static_cast<double>(i) / static_cast<double>(d));
        double& a = v[static_cast<size_t>(h * d + 2 * i)];
        double& b = v[static_cast<size_t>(h * d + 2 * i + 1)];
        const double a0 = a;
        a = a0 * std::cos(angle) - b * std::sin(angle);
        b = b * std::cos(angle) + a0 * std::sin(angle);
      }
    }
  }
  void layer(const std::string& p, std::vector<Vector>& x) const {
    const size_t n = x.size();
    std::vector<Vector> q(n), k(n), v(n);
    for (size_t t = 0; t < n; ++t) {
      const Vector h = norm(x[t], p + "attn_norm.weight");
      q[t] = multiply(p + "attn_q.weight", h);
      k[t] = multiply(p + "attn_k.weight", h);
      v[t] = multiply(p + "attn_v.weight", h);
      rotate(q[t], n_heads, t);
      rotate(k[t], n_kv_heads, t);
    }
    const auto d = static_cast<size_t>(head_dim());
    for (size_t t = 0; t < n; ++t) {
      Vector out(static_cast<size_t>(hidden), 0.0);
      for (size_t head = 0; head < static_cast<size_t>(n_heads); ++head) {
        const size_t kv = head / static_cast<size_t>(n_heads / n_kv_heads);
        Vector s(t + 1);
        double most = -1e300, sum = 0;
        for (size_t j = 0; j <= t; ++j) {
          for (size_t c = 0; c < d; ++c) s[j] += q[t][head * d + c] * k[j][kv * d + c];
          s[j] /= std::sqrt(static_cast<double>(d));
          most = std::max(most, s[j]);
        }
        for (auto& e : s) sum += e = std::exp(e - most);
        for (size_t j = 0; j <= t; ++j)
          for (size_t c = 0; c < d; ++c) out[head * d + c] += s[j] / sum * v[j][kv * d + c];
      }
      const Vector y = multiply(p + "attn_output.weight", out);
      for (size_t c = 0; c < y.size(); ++c) x[t][c] += y[c];
    }
    for (size_t t = 0; t < n; ++t) {
      const Vector h = norm(x[t], p + "ffn_norm.weight");
      Vector g = multiply(p + "ffn_gate.weight", h);
      const Vector u = multiply(p + "ffn_up.weight", h);
      for (size_t c = 0; c < g.size(); ++c) g[c] = g[c] / (1 + std::exp(-g[c])) * u[c];
      const Vector y = multiply(p + "ffn_down.weight", g);
      for (size_t c = 0; c < y.size(); ++c) x[t][c] += y[c];
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
