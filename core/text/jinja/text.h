// Text that remembers which of its bytes came from people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/jinja/context.h"

namespace kvasir::jinja {

/// Bytes [begin, end) of a text.
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;
};

/// Valid UTF-8 and where content (as opposed to the template's own markup) stands in it: ranges
/// ascending, not touching, not empty.
struct Text {
  std::string bytes;
  std::vector<ByteRange> content;

  static Text markup(std::string_view bytes) { return {std::string(bytes), {}}; }
};

/// Appends to a text within the budget; after a failure it does nothing.
class TextBuilder {
 public:
  explicit TextBuilder(Context& context) : context_(context) {}
  ~TextBuilder() { context_.give_back_bytes(charged_); }
  TextBuilder(const TextBuilder&) = delete;
  TextBuilder& operator=(const TextBuilder&) = delete;

  void append(std::string_view bytes, bool is_content);
  void append_markup(std::string_view bytes) { append(bytes, false); }
  void append(const Text& text) { append(text, 0, text.bytes.size()); }
  /// Bytes [begin, end) of `text` with their origin.
  void append(const Text& text, size_t begin, size_t end);
  /// Room for `n` bytes more, so that a known size is allocated once.
  void reserve(size_t n) { grow(text_.bytes.size() + n); }

  Context& context() { return context_; }
  const Text& text() const { return text_; }
  /// Takes the text out; its bytes stay charged to `charged`.
  Text take(int64_t& charged);

 private:
  bool grow(size_t size);
  void mark(size_t begin, size_t end);

  Context& context_;
  Text text_;
  int64_t charged_ = 0;
};

/// Walks a text's origin forward: is the byte at `at` content? `at` never decreases.
class OriginCursor {
 public:
  explicit OriginCursor(const Text& text) : ranges_(text.content) {}
  bool is_content(size_t at) {
    while (next_ < ranges_.size() && ranges_[next_].end <= at) ++next_;
    return next_ < ranges_.size() && ranges_[next_].begin <= at;
  }

 private:
  const std::vector<ByteRange>& ranges_;
  size_t next_ = 0;
};

}  // namespace kvasir::jinja
