#include "core/evaluation/logits_file.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/error.h"

namespace kvasir {
namespace {

/// IEEE 754 binary16 as float: exact.
float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1F;
  const uint32_t fraction = half & 0x3FF;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000 | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) * 0x1p-24F;  // zero or denormal
  return sign != 0 ? -magnitude : magnitude;
}

Error about(const std::string& path, const Error& error) {
  return {error.code, fmt::format("'{}': {}", path, error.message)};
}

Error wrong(const std::string& path, std::string_view what) {
  return make_error(ErrorCode::invalid_argument, "'{}': {}", path, what);
}

std::string shape_text(const npy::Array& array) {
  std::string text(npy::element_name(array.element));
  for (size_t i = 0; i < array.shape.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? " [" : ", ", array.shape[i]);
  return text + (array.shape.empty() ? " (one number)" : "]");
}

}  // namespace

Result<LogitsFile> LogitsFile::open(const std::string& path) {
  auto mapped = MappedFile::open(path);
  if (!mapped) return std::move(mapped).error();
  LogitsFile file;
  file.file_ = std::move(*mapped);
  const auto archive = npz::Archive::parse(file.file_.bytes());
  if (!archive) return about(path, archive.error());
  const auto tokens = archive->array("tokens");
  if (!tokens) return about(path, tokens.error());
  if (tokens->element != npy::Element::i32 || tokens->shape.size() != 1)
    return wrong(path, fmt::format("'tokens' is {}, not int32 [n]", shape_text(*tokens)));
  const auto logits = archive->array("logits");
  if (!logits) return about(path, logits.error());
  if (logits->element == npy::Element::i32 || logits->shape.size() != 2 ||
      logits->shape[0] != tokens->shape[0]) {
    return wrong(path, fmt::format("'logits' is {}, not float32 or float16 [{}, n_vocab] as "
                                   "'tokens' asks for",
                                   shape_text(*logits), tokens->shape[0]));
  }
  if (archive->contains("ctx")) {
    const auto ctx = archive->array("ctx");
    if (!ctx) return about(path, ctx.error());
    if (ctx->element != npy::Element::i32 || ctx->data.size() != sizeof(int32_t))
      return wrong(path, fmt::format("'ctx' is {}, not one int32", shape_text(*ctx)));
    std::memcpy(&file.context_tokens_.emplace(), ctx->data.data(), sizeof(int32_t));
  }
  for (const char* name : {"tokens", "logits"}) {
    if (const auto s = archive->check_sum(name); !s) return about(path, s.error());
  }
  file.tokens_.resize(tokens->data.size() / sizeof(TokenId));
  if (!file.tokens_.empty())
    std::memcpy(file.tokens_.data(), tokens->data.data(), tokens->data.size());
  file.logits_ = *logits;
  return file;
}

void LogitsFile::row(int64_t i, std::span<float> values) const {
  const size_t bytes = values.size() * npy::element_bytes(logits_.element);
  const std::byte* from = logits_.data.data() + static_cast<size_t>(i) * bytes;
  if (logits_.element == npy::Element::f32) {
    std::memcpy(values.data(), from, bytes);
    return;
  }
  for (size_t column = 0; column < values.size(); ++column) {
    uint16_t half;
    std::memcpy(&half, from + column * sizeof(half), sizeof(half));
    values[column] = half_to_float(half);
  }
}

Status LogitsFile::check(std::span<const TokenId> tokens, int64_t context_tokens,
                         int64_t vocabulary) const {
  if (context_tokens_ && *context_tokens_ != context_tokens) {
    return wrong(path(), fmt::format("its windows have {} tokens, not {} (see --ctx)",
                                     *context_tokens_, context_tokens));
  }
  if (n_vocab() != vocabulary) {
    return wrong(
        path(), fmt::format("its vocabulary has {} tokens, the model's {}", n_vocab(), vocabulary));
  }
  for (size_t i = 0; i < std::min(tokens.size(), tokens_.size()); ++i) {
    if (tokens[i] != tokens_[i]) {
      return wrong(path(), fmt::format("its tokens differ from the text's at index {}: {} there, "
                                       "{} here",
                                       i, tokens_[i], tokens[i]));
    }
  }
  if (tokens.size() != tokens_.size()) {
    return wrong(path(), fmt::format("it has {} tokens, the text {}: they differ at index {}",
                                     tokens_.size(), tokens.size(),
                                     std::min(tokens.size(), tokens_.size())));
  }
  return {};
}

Result<LogitsWriter> LogitsWriter::create(const std::string& path, std::span<const TokenId> tokens,
                                          int64_t context_tokens, int64_t n_vocab) {
  if (context_tokens > INT32_MAX)
    return make_error(ErrorCode::invalid_argument, "windows of {} tokens are too large",
                      context_tokens);
  auto writer = npz::Writer::create(path);
  if (!writer) return std::move(writer).error();
  const auto n = static_cast<int64_t>(tokens.size());
  const int64_t tokens_shape[] = {n};
  if (auto s = writer->begin("tokens", npy::Element::i32, tokens_shape); !s)
    return std::move(s).error();
  if (auto s = writer->write(std::as_bytes(tokens)); !s) return std::move(s).error();
  if (auto s = writer->begin("ctx", npy::Element::i32, {}); !s) return std::move(s).error();
  const auto ctx = static_cast<int32_t>(context_tokens);
  if (auto s = writer->write(std::as_bytes(std::span(&ctx, 1))); !s) return std::move(s).error();
  const int64_t logits_shape[] = {n, n_vocab};
  if (auto s = writer->begin("logits", npy::Element::f32, logits_shape); !s)
    return std::move(s).error();
  return LogitsWriter(std::move(*writer));
}

Status LogitsWriter::write(std::span<const float> rows) {
  return writer_.write(std::as_bytes(rows));
}

}  // namespace kvasir
