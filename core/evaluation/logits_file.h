// A model's tokens and logits in a NumPy archive, to compare models with.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/files/mapped_file.h"
#include "core/files/npz.h"
#include "core/text/tokenizer.h"
#include "kvasir/result.h"

namespace kvasir {

/// An .npz file (numpy.savez, not compressed) with `tokens`, int32 [n], and `logits`, float32 or
/// float16 [n, n_vocab]: row i holds the logits after token i of its window. `ctx`, an int32 alone,
/// may say how many tokens a window has. Files may come from anywhere; every error names the file
/// and what is wrong. Immutable and thread-safe.
class LogitsFile {
 public:
  static Result<LogitsFile> open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  int64_t n_tokens() const { return static_cast<int64_t>(tokens_.size()); }
  int64_t n_vocab() const { return logits_.shape[1]; }
  std::span<const TokenId> tokens() const { return tokens_; }

  /// Row `i` as floats; `values` is [n_vocab].
  void row(int64_t i, std::span<float> values) const;

  /// An error that names the first difference when the file is not about these tokens, or its
  /// vocabulary or windows have another size.
  Status check(std::span<const TokenId> tokens, int64_t context_tokens, int64_t n_vocab) const;

 private:
  LogitsFile() = default;
  MappedFile file_;
  std::vector<TokenId> tokens_;
  npy::Array logits_;
  std::optional<int32_t> context_tokens_;
};

/// Writes such a file row by row; it appears at `finish`, whole.
class LogitsWriter {
 public:
  static Result<LogitsWriter> create(const std::string& path, std::span<const TokenId> tokens,
                                     int64_t context_tokens, int64_t n_vocab);
  /// The next rows, [any number][n_vocab].
  Status write(std::span<const float> rows);
  Status finish() { return writer_.finish(); }

 private:
  explicit LogitsWriter(npz::Writer writer) : writer_(std::move(writer)) {}
  npz::Writer writer_;
};

}  // namespace kvasir
